# SPDX-License-Identifier: MIT
# scripts/bench/samples.awk - for awk -f, with median.awk: keeps the samples of a benchmark: one
# value for each key (what was measured), round and side.

function note(key, round, side, value)
{
	sample[key, round, side] = value
	if (round > rounds)
		rounds = round
	if (!(key in seen)) {
		seen[key] = 1
		order[++keys] = key
	}
}

# the median of a side
function of(key, side,    v, r)
{
	for (r = 1; r <= rounds; r++)
		v[r] = sample[key, r, side]
	return median(v, rounds)
}

# the median of the ratios of a side to a base; each ratio is within a round
function ratio(key, side, base,    v, r)
{
	for (r = 1; r <= rounds; r++)
		v[r] = sample[key, r, side] / sample[key, r, base]
	return median(v, rounds)
}

# Text for a median m that was just computed: m, and the smallest and largest value
function spread(m)
{
	return sprintf("%.2f (%.2f..%.2f)", m, low, high)
}

function verdict(target, met)
{
	return sprintf("   target %.2f: %s", target, met ? "met" : "missed")
}
