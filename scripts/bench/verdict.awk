# SPDX-License-Identifier: MIT
# scripts/bench/verdict.awk - for awk -f, with median.awk: judges the ratios of the rounds.

# Stores in `low` and `high` two of the sorted samples v[1..n]: the narrowest interval that contains
# the true median with a probability of at least 93 %.
function interval(v, n,    cut, term, tail)
{
	# tail: the probability that at most `cut` of n samples are below the true median.
	term = 0.5 ^ n
	tail = term
	for (cut = 0; n - 1 - cut > cut + 1; cut++) {
		term *= (n - cut) / (cut + 1)
		tail += term
		if (2 * tail > 0.07)
			break
	}
	low = v[cut + 1]
	high = v[n - cut]
}

# Returns "faster", "slower", "no difference" or "undecided", and stores the median and its interval
# in `middle`, `low` and `high`. A ratio within 2 % of 1 is no difference. With fewer than 5 rounds
# no interval reaches 93 %.
function judge(v, n, more_is_better)
{
	middle = median(v, n)
	interval(v, n)
	if (n < 5)
		return "undecided"
	if (low >= 0.98 && high <= 1.02)
		return "no difference"
	if ((low > 1 || high < 1) && (middle < 0.98 || middle > 1.02))
		return (low > 1) == (more_is_better > 0) ? "faster" : "slower"
	if (low <= 1 && high >= 1 && middle >= 0.98 && middle <= 1.02 && high < 1.1 * low)
		return "no difference"
	return "undecided"
}
