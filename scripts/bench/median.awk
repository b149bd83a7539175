# SPDX-License-Identifier: MIT
# scripts/bench/median.awk - for awk -f: median() sorts v[1..n] and returns the median. It stores
# the smallest and the largest value in `low` and `high`.
function median(v, n,    i, k, x)
{
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	low = v[1]
	high = v[n]
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
