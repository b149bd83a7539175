# SPDX-License-Identifier: MIT
"""driver/verdict.py - what the ratios of the rounds say."""
from math import comb
from statistics import median

# With fewer rounds no interval holds the true median often enough.
FEWEST = 5
# A ratio within these bounds is no difference: a program neither gains nor loses.
LOW, HIGH = 0.98, 1.02


def interval(ratios):
    """The narrowest pair of samples that holds the true median in at least 93 % of all cases."""
    r, n = sorted(ratios), len(ratios)
    cut = 0
    while 2 * sum(comb(n, i) for i in range(cut + 2)) / 2 ** n <= 0.07 and n - 1 - cut > cut + 1:
        cut += 1
    return r[cut], r[n - 1 - cut]


def judge(ratios, better_is_more):
    """(median, low, high, word): faster, slower, no difference, or undecided."""
    low, high = interval(ratios)
    if len(ratios) < FEWEST:
        word = "undecided"
    elif low >= LOW and high <= HIGH:
        word = "no difference"
    elif (low > 1 or high < 1) and not LOW <= median(ratios) <= HIGH:
        word = "faster" if (low > 1) == better_is_more else "slower"
    elif low <= 1 <= high and LOW <= median(ratios) <= HIGH and high / low < 1.1:
        word = "no difference"
    else:
        word = "undecided"
    return median(ratios), low, high, word
