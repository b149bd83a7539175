# SPDX-License-Identifier: MIT
#
# scripts/bench/report/record.awk - for awk -f, with summary.awk: prints a line for each case, of the form that
# scripts/machine/measured.h has. fz_measured is directory, program and command, fz_now the time.

END {
	for (c = 1; c <= cases; c++) {
		word = judged(c, (c, "cpu_us_per_request") in in_case ? "cpu_us_per_request" : "cpu_ms")
		if (word != "")
			printf "%d\t%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%s\t%s\n", ENVIRON["fz_now"], ENVIRON["fz_version"], \
				connections_of[c], rate_of[c], middle, low, high, word, ENVIRON["fz_measured"]
	}
}
