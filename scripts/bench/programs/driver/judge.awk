# SPDX-License-Identifier: MIT
# driver/judge.awk - for awk -f, with median.awk and verdict.awk: judges the ratios in each line. The
# first field is 1 if more is better. Prints median, low, high and the verdict.
{
	n = NF - 1
	for (i = 1; i <= n; i++)
		v[i] = $(i + 1) + 0
	word = judge(v, n, $1)
	printf "%.17g %.17g %.17g %s\n", middle, low, high, word
	split("", v)
}
