# SPDX-License-Identifier: MIT
#
# scripts/bench/report/summary.awk - for awk -f, with median.awk and verdict.awk: reads the samples
# of "fiberize bench" (lines CASE ROUND SIDE NAME VALUE), and has the functions that all reports
# need. A case is a number of connections and a rate. Variable: rounds. Texts come as fz_* in the
# environment, because awk would interpret backslashes in a variable.

function figure(name, label, better)
{
	figures[++figure_count] = name
	label_of[name] = label
	better_of[name] = better
}

# The third argument, better, is 1 if more is better, -1 if less is better, 0 if neither is.
BEGIN {
	figure("requests_per_second", "requests/s", 1)
	figure("latency_p50_us", "latency p50, us", -1)
	figure("latency_p99_us", "latency p99, us", -1)
	figure("latency_p999_us", "latency p99.9, us", -1)
	figure("cpu_us_per_request", "CPU us/request", -1)
	figure("cpu_ms", "CPU ms", -1)
	figure("switches_per_request", "switches/request", 0)
	figure("switches", "context switches", 0)
	figure("switches_voluntary", "  voluntary", 0)
	figure("switches_involuntary", "  involuntary", 0)
	figure("peak_mb", "peak memory, MB", -1)
	figure("descriptors_left", "descriptors left", 0)
	cases = split(ENVIRON["fz_connections"], connections_of)
	split(ENVIRON["fz_rates"], rate_of)
	split("native fiberize", side_of)
}

function put(c, r, side, name, value)
{
	if (!(name in seen)) {
		seen[name] = 1
		order[++names] = name
	}
	in_case[c, name] = 1
	sample[c, r, side, name] = value
}

{
	put($1, $2, $3, $4, $4 == "host" ? $5 : $5 + 0)
	if ($4 == "errors")
		errors[$1, $3] += $5
}

function derive(c, r, side,    n, seconds)
{
	# Some loads print the rate only: compute the number of requests.
	if (!((c, r, side, "requests") in sample) && sample[c, r, side, "requests_per_second"] > 0)
		put(c, r, side, "requests", sample[c, r, side, "requests_per_second"] * \
			sample[c, r, side, "load_seconds"])
	n = sample[c, r, side, (c, r, side, "requests_total") in sample ? \
		"requests_total" : "requests"]
	if (n > 0) {
		put(c, r, side, "cpu_us_per_request", sample[c, r, side, "cpu_us"] / n)
		put(c, r, side, "switches_per_request", \
			(sample[c, r, side, "switches_voluntary"] + \
			 sample[c, r, side, "switches_involuntary"]) / n)
		seconds = sample[c, r, side, (c, r, side, "seconds") in sample ? \
			"seconds" : "load_seconds"]
		if (!((c, r, side, "requests_per_second") in sample) && seconds > 0)
			put(c, r, side, "requests_per_second", n / seconds)
	} else {
		delete sample[c, r, side, "requests"]
		delete sample[c, r, side, "requests_total"]
	}
	put(c, r, side, "switches", sample[c, r, side, "switches_voluntary"] + \
		sample[c, r, side, "switches_involuntary"])
	put(c, r, side, "cpu_ms", sample[c, r, side, "cpu_us"] / 1000)
	put(c, r, side, "peak_mb", sample[c, r, side, "peak_kb"] / 1024)
}

END {
	for (c = 1; c <= cases; c++)
		for (r = 1; r <= rounds; r++) {
			derive(c, r, "native")
			derive(c, r, "fiberize")
		}
}

# Stores in v[1..n] the values of a figure of one side, or if side is "ratio", the ratios within a
# round. Returns n, and stores the median, smallest and largest value in `middle`, `low` and `high`.
function collect(c, side, name, v,    r, n, a, b)
{
	n = 0
	split("", v)
	for (r = 1; r <= rounds; r++) {
		if (side != "ratio") {
			if ((c, r, side, name) in sample)
				v[++n] = sample[c, r, side, name]
			continue
		}
		if (!((c, r, "native", name) in sample) ||
		    !((c, r, "fiberize", name) in sample))
			continue
		a = sample[c, r, "native", name]
		b = sample[c, r, "fiberize", name]
		if (a > 0)
			v[++n] = b / a
	}
	if (n)
		middle = median(v, n)
	return n
}

# The verdict by the ratios of a figure; "" if there are none. Stores the median and its interval in
# `middle`, `low` and `high`.
function judged(c, name,    v, n)
{
	n = collect(c, "ratio", name, v)
	return n ? judge(v, n, better_of[name]) : ""
}

# Do reports show this figure for this case?
function shown(c, name)
{
	if (!((c, name) in in_case) || (name == "cpu_ms" && (c, "cpu_us_per_request") in in_case))
		return 0
	return name != "descriptors_left" || leaks(c, "native") || leaks(c, "fiberize")
}

# How many descriptors each round leaves open if that is a leak; else 0. A leak leaves about one for
# each connection or request, in every round; a program may keep a few files open for other reasons.
function leaks(c, side,    v, few)
{
	few = connections_of[c] / 2
	if (!collect(c, side, "descriptors_left", v))
		return 0
	return low >= (few > 8 ? few : 8) ? low : 0
}

function leak_text(c, side)
{
	return side ", " case_label(c) ": after the load the program has " leaks(c, side) \
		" descriptors more than before it: it leaks them"
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

function cell(c, side, name,    v)
{
	if (!collect(c, side, name, v))
		return "-"
	if (side == "ratio")
		return sprintf("%.2f (%.2f..%.2f)", middle, low, high)
	return sprintf("%s (%s..%s)", short(middle), short(low), short(high))
}

# The name of a case.
function case_label(c)
{
	if (connections_of[c] == 0)
		return "the load"
	return connections_of[c] (connections_of[c] == 1 ? " connection" : " connections") \
		(rate_of[c] ? ", " rate_of[c] " requests/s by the clock" : "")
}
