# SPDX-License-Identifier: MIT
#
# scripts/bench/report/leaks.awk - for awk -f, with summary.awk: prints which side leaks descriptors,
# and exits with 1 if one does.
END {
	for (c = 1; c <= cases; c++)
		for (s = 1; s <= 2; s++)
			if (leaks(c, side_of[s])) {
				print leak_text(c, side_of[s])
				found = 1
			}
	exit found
}
