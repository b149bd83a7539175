# SPDX-License-Identifier: MIT
# driver/judge.awk - for awk -f, with median.awk and verdict.awk: judges the ratios of each line,
# which begins with 1 if more is better; prints median, low, high and the word.
{
	n = NF - 1
	for (i = 1; i <= n; i++)
		v[i] = $(i + 1) + 0
	word = judge(v, n, $1)
	printf "%.17g %.17g %.17g %s\n", middle, low, high, word
	split("", v)
}
