# SPDX-License-Identifier: MIT
#
# scripts/bench/report/leaks.awk - for awk -f, with summary.awk: prints who leaks descriptors, and
# exits with 1 if anybody does.
END {
	for (c = 1; c <= cases; c++)
		for (s = 1; s <= 2; s++)
			if (leaks(c, side_of[s])) {
				print leak_text(c, side_of[s])
				found = 1
			}
	exit found
}
