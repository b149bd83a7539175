# SPDX-License-Identifier: MIT
#
# scripts/bench/report/words.awk - for awk -f, with summary.awk: tells the verdict in sentences, for
# readers who do not read tables.

# Stores in name[1..n] the figures that decide a case: how much the program does, and its cost. With
# a rate, both sides do equally much, so latency decides instead.
function deciding(c, name,    n)
{
	n = split("", name)
	if (rate_of[c]) {
		if ((c, "latency_p99_us") in in_case)
			name[++n] = "latency_p99_us"
	} else if ((c, "requests_per_second") in in_case)
		name[++n] = "requests_per_second"
	name[++n] = (c, "cpu_us_per_request") in in_case ? "cpu_us_per_request" : "cpu_ms"
	return n
}

# One verdict from several: faster, slower, mixed, no difference or undecided.
function together(words,    all)
{
	if (words ~ /faster/ && words ~ /slower/)
		return "mixed"
	if (words ~ /slower/)
		return "slower"
	if (words ~ /faster/)
		return "faster"
	return words ~ /undecided/ || words !~ /no difference/ ? "undecided" : "no difference"
}

function case_verdict(c,    name, n, i, words)
{
	n = deciding(c, name)
	for (i = 1; i <= n; i++)
		words = words " " judged(c, name[i])
	return together(words)
}

function verdict_of_all(    c, words)
{
	for (c = 1; c <= cases; c++)
		words = words " " case_verdict(c)
	return words ~ /mixed/ ? "mixed" : together(words)
}

# Has any case a ratio of a figure that decides it?
function compared(    c, i, n, name)
{
	for (c = 1; c <= cases; c++) {
		n = deciding(c, name)
		for (i = 1; i <= n; i++)
			if (judged(c, name[i]) != "")
				return 1
	}
	return 0
}

function headline(    word)
{
	word = verdict_of_all()
	if (word == "faster")
		return "This program gains by fiberize."
	if (word == "slower")
		return "This program loses by fiberize."
	if (word == "mixed")
		return "This program gains by fiberize in some ways and loses in others."
	if (word == "no difference")
		return "fiberize makes no difference to this program."
	return "The measurement does not tell whether this program gains by fiberize."
}

# Words for a ratio, for example "23 % more requests per second"
function change(ratio, what)
{
	if (ratio >= 1.995)
		return sprintf("%.1f times the %s", ratio, what)
	if (ratio >= 1.005)
		return sprintf("%.0f %% more %s", (ratio - 1) * 100, what)
	if (ratio <= 0.995)
		return sprintf("%.0f %% less %s", (1 - ratio) * 100, what)
	return "as much " what
}

function plain(name)
{
	if (name == "requests_per_second")
		return "throughput"
	if (name == "latency_p99_us")
		return "waiting time of the slowest in 100 requests"
	return name == "cpu_ms" ? "CPU time" : "CPU time per request"
}

# One sentence about a case.
function sentence(c,    name, n, i, word, text)
{
	n = deciding(c, name)
	for (i = 1; i <= n; i++) {
		word = judged(c, name[i])
		if (word == "")
			continue
		text = text (text == "" ? "" : "; ") change(middle, plain(name[i])) \
			sprintf(" (ratio %.2f, %s)", middle, word == "undecided" ? \
				sprintf("undecided: between %.2f and %.2f", low, high) : word)
	}
	if (text == "")
		return "With " case_label(c) ", there is nothing to compare."
	return "With " case_label(c) ", fiberize gives " text "."
}

# Stores in note[1..n] what a reader must know before trusting the figures. Returns n.
function notes(note,    n, c, s, busy)
{
	n = split("", note)
	if (rounds < 5)
		note[++n] = rounds " round" (rounds > 1 ? "s are" : " is") \
			" too few for a verdict; it needs 5 (--rounds)."
	else if (verdict_of_all() == "undecided" && compared())
		note[++n] = "The rounds differ too much for a verdict. More rounds (--rounds 15), " \
			"longer ones (--duration) or a quieter machine help."
	if (ENVIRON["fz_server_cpus"] == "")
		note[++n] = "The program and the load shared the same CPUs; --cpus keeps them apart."
	busy = ENVIRON["fz_load_average"] + 0
	if (busy > ENVIRON["fz_cpus"] / 2)
		note[++n] = sprintf("The machine had other work when the measurement began: load " \
			"average %.1f on %d CPUs.", busy, ENVIRON["fz_cpus"])
	for (c = 1; c <= cases; c++)
		for (s = 1; s <= 2; s++) {
			if (errors[c, side_of[s]])
				note[++n] = side_of[s] ", " case_label(c) ": " errors[c, side_of[s]] \
					" errors reported by the load."
			if (leaks(c, side_of[s]))
				note[++n] = leak_text(c, side_of[s]) "."
		}
	return n
}
