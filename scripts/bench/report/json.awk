# SPDX-License-Identifier: MIT
#
# scripts/bench/report/json.awk - for awk -f, with summary.awk and words.awk: prints the samples of
# all rounds and their summary as JSON. fz_loads has a line for each case: the load command.

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

function which(c)
{
	return sprintf("\"connections\": %s, \"rate\": %s", connections_of[c] ? \
		connections_of[c] : "null", rate_of[c] ? rate_of[c] : "null")
}

function round(c, r, side,    i, x)
{
	printf "    {%s, \"round\": %d, \"side\": \"%s\"", which(c), r, side
	for (i = 1; i <= names; i++) {
		if (!((c, r, side, order[i]) in sample))
			continue
		x = sample[c, r, side, order[i]]
		printf ", \"%s\": %s", order[i], order[i] == "host" ? string(x) : number(x)
	}
	printf "}"
}

function summary(c, side,    i, v, comma, word)
{
	printf "      \"%s\": {", side
	comma = ""
	for (i = 1; i <= names; i++) {
		if (order[i] == "host" || order[i] == "port" || !collect(c, side, order[i], v))
			continue
		printf "%s\n        \"%s\": {\"median\": %s, \"min\": %s, \"max\": %s", \
			comma, order[i], number(middle), number(low), number(high)
		if (side == "ratio" && better_of[order[i]]) {
			word = judged(c, order[i])
			printf ", \"low\": %s, \"high\": %s, \"verdict\": \"%s\"", \
				number(low), number(high), word
		}
		printf "}"
		comma = ","
	}
	printf "\n      }"
}

END {
	split(ENVIRON["fz_loads"], load_of, "\n")
	printf "{\n"
	printf "  \"fiberize\": %s,\n", string(ENVIRON["fz_version"])
	printf "  \"commit\": %s,\n", string(ENVIRON["fz_commit"])
	printf "  \"date\": \"%s\",\n", ENVIRON["fz_date"]
	printf "  \"machine\": {\"architecture\": %s, \"cpu\": %s, \"cpus\": %d, \"kernel\": %s, " \
		"\"load_average\": %s},\n", string(ENVIRON["fz_machine"]), \
		string(ENVIRON["fz_cpu"]), ENVIRON["fz_cpus"], string(ENVIRON["fz_kernel"]), \
		number(ENVIRON["fz_load_average"])
	printf "  \"command\": %s,\n", string(ENVIRON["fz_command"])
	printf "  \"program\": [%s],\n", ENVIRON["fz_program"]
	printf "  \"program_cpus\": %s,\n", string(ENVIRON["fz_server_cpus"])
	printf "  \"load_cpus\": %s,\n", string(ENVIRON["fz_load_cpus"])
	printf "  \"verdict\": \"%s\",\n", verdict_of_all()
	printf "  \"notes\": ["
	count = notes(note)
	for (i = 1; i <= count; i++)
		printf "%s%s", (i > 1 ? ", " : ""), string(note[i])
	printf "],\n  \"rounds\": [\n"
	for (c = 1; c <= cases; c++)
		for (r = 1; r <= rounds; r++) {
			round(c, r, "native")
			printf ",\n"
			round(c, r, "fiberize")
			printf "%s\n", (c < cases || r < rounds ? "," : "")
		}
	printf "  ],\n  \"summary\": [\n"
	for (c = 1; c <= cases; c++) {
		printf "    {%s, \"load\": %s, \"verdict\": \"%s\",\n", which(c), \
			string(load_of[c]), case_verdict(c)
		summary(c, "native")
		printf ",\n"
		summary(c, "fiberize")
		printf ",\n"
		summary(c, "ratio")
		printf "\n    }%s\n", (c < cases ? "," : "")
	}
	printf "  ]\n}\n"
}
