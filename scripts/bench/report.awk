# SPDX-License-Identifier: MIT
#
# scripts/bench/report.awk - prints the text and the JSON of "fiberize bench" from one reading of
# its samples: lines ROUND SIDE NAME VALUE.  Variables: rounds, connections, duration; others come
# as fz_* in the environment, which awk does not unescape.  Needs median.awk.

# the figures of one side (or ratios, side by side); how many there are
function collect(side, name, v,    r, n, a, b)
{
	n = 0
	for (r = 1; r <= rounds; r++) {
		if (side != "ratio") {
			if ((r, side, name) in sample)
				v[++n] = sample[r, side, name]
			continue
		}
		if (!((r, "native", name) in sample) ||
		    !((r, "fiberize", name) in sample))
			continue
		a = sample[r, "native", name]
		b = sample[r, "fiberize", name]
		if (a > 0)
			v[++n] = b / a
	}
	if (n)
		middle = median(v, n)
	return n
}

function short(x)
{
	if (x == 0)
		return "0"
	if (x >= 100)
		return sprintf("%.0f", x)
	if (x >= 10)
		return sprintf("%.1f", x)
	return sprintf("%.2f", x)
}

function cell(side, name,    v, n)
{
	n = collect(side, name, v)
	if (!n)
		return "-"
	if (side == "ratio")
		return sprintf("%.2f (%.2f..%.2f)", middle, low, high)
	return sprintf("%s (%s..%s)", short(middle), short(low), short(high))
}

function row(label, name)
{
	if (!(name in seen))
		return
	printf "%-24s %-28s %-28s %s\n", label, cell("native", name),
		cell("fiberize", name), cell("ratio", name)
}

function string(text,    i, c, out)
{
	out = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "\\" || c == "\"")
			out = out "\\" c
		else if (c == "\n")
			out = out "\\n"
		else if (c == "\t")
			out = out "\\t"
		else if (c < " " || c == "\177")
			out = out "?"
		else
			out = out c
	}
	return "\"" out "\""
}

function number(x)
{
	return sprintf("%.12g", x)
}

function json_round(r, side,    i, x)
{
	printf "    {\"round\": %d, \"side\": \"%s\"", r, side >out
	for (i = 1; i <= names; i++) {
		if (!((r, side, order[i]) in sample))
			continue
		x = sample[r, side, order[i]]
		x = order[i] == "host" ? string(x) : number(x)
		printf ", \"%s\": %s", order[i], x >out
	}
	printf "}" >out
}

function json_summary(side,    i, v, comma)
{
	printf "    \"%s\": {", side >out
	comma = ""
	for (i = 1; i <= names; i++) {
		if (order[i] == "host" || order[i] == "port")
			continue
		split("", v)
		if (!collect(side, order[i], v))
			continue
		printf "%s\n      \"%s\": {\"median\": %s, \"min\": %s, \"max\": %s}", \
			comma, order[i], number(middle), number(low), number(high) >out
		comma = ","
	}
	printf "\n    }" >out
}

function derive(r, side,    n)
{
	n = sample[r, side, (r, side, "requests_total") in sample ? \
		"requests_total" : "requests"]
	if (n > 0) {
		put(r, side, "cpu_us_per_request", sample[r, side, "cpu_us"] / n)
		put(r, side, "switches_per_request", \
			(sample[r, side, "switches_voluntary"] + \
			 sample[r, side, "switches_involuntary"]) / n)
	} else {
		delete sample[r, side, "requests"]
		delete sample[r, side, "requests_total"]
	}
	put(r, side, "switches", sample[r, side, "switches_voluntary"] + \
		sample[r, side, "switches_involuntary"])
	put(r, side, "cpu_ms", sample[r, side, "cpu_us"] / 1000)
	put(r, side, "peak_mb", sample[r, side, "peak_kb"] / 1024)
}

function put(r, side, name, value)
{
	if (!(name in seen)) {
		seen[name] = 1
		order[++names] = name
	}
	sample[r, side, name] = value
}

{
	put($1, $2, $3, $3 == "host" ? $4 : $4 + 0)
	if ($3 == "errors")
		errors[$2] += $4
}

END {
	for (r = 1; r <= rounds; r++) {
		derive(r, "native")
		derive(r, "fiberize")
	}
	printf "%d round%s of %s", rounds, (rounds > 1 ? "s" : ""), \
		(ENVIRON["fz_mode"] == "load" ? "the load" : \
			duration " s, " connections " connections")
	if (ENVIRON["fz_server_cpus"] != "")
		printf "; program on CPU %s, load on CPU %s", \
			ENVIRON["fz_server_cpus"], ENVIRON["fz_load_cpus"]
	printf ": median (min..max)\n\n"
	printf "%-24s %-28s %-28s %s\n", "", "native", "fiberize", "ratio"
	row("requests/s", "requests_per_second")
	row("latency p50, us", "latency_p50_us")
	row("latency p99, us", "latency_p99_us")
	if ("cpu_us_per_request" in seen) {
		row("CPU us/request", "cpu_us_per_request")
		row("switches/request", "switches_per_request")
	} else
		row("CPU ms", "cpu_ms")
	row("context switches", "switches")
	row("  voluntary", "switches_voluntary")
	row("  involuntary", "switches_involuntary")
	row("peak memory, MB", "peak_mb")
	for (side in errors) {
		if (errors[side])
			printf "\n%s: %d errors reported by the load\n", side, errors[side]
	}

	out = ENVIRON["fz_json"]
	if (out == "")
		exit
	printf "{\n" >out
	printf "  \"fiberize\": %s,\n", string(ENVIRON["fz_version"]) >out
	printf "  \"date\": \"%s\",\n", ENVIRON["fz_date"] >out
	printf "  \"machine\": {\"architecture\": %s, \"kernel\": %s, \"cpus\": %d},\n", \
		string(ENVIRON["fz_machine"]), string(ENVIRON["fz_kernel"]), \
		ENVIRON["fz_cpus"] >out
	printf "  \"program\": [%s],\n", ENVIRON["fz_program"] >out
	printf "  \"load\": %s,\n", string(ENVIRON["fz_load"]) >out
	printf "  \"program_cpus\": %s,\n", string(ENVIRON["fz_server_cpus"]) >out
	printf "  \"load_cpus\": %s,\n", string(ENVIRON["fz_load_cpus"]) >out
	printf "  \"rounds\": [\n" >out
	for (r = 1; r <= rounds; r++) {
		json_round(r, "native")
		printf ",\n" >out
		json_round(r, "fiberize")
		printf "%s\n", (r < rounds ? "," : "") >out
	}
	printf "  ],\n  \"summary\": {\n" >out
	json_summary("native")
	printf ",\n" >out
	json_summary("fiberize")
	printf ",\n" >out
	json_summary("ratio")
	printf "\n  }\n}\n" >out
	exit(close(out) != 0)
}
