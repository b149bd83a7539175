#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/explore_all.sh BOUND [SCENARIO...] - every run with up to BOUND deviations from the scheduler's
# default, of these scenarios or of all.  For each how many runs that were, in how much CPU time, and whether all
# were tried; then the totals.  Runs that found more memory to be shared, and were made again therefore, count only as
# time.  FZ_BUILD: the build, if not build/.  Exit status 0 if all were tried and passed, 1 if not, 2 if it cannot
# begin.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/model/bounded.inc
. "$root/tests/model/bounded.inc"

# Each pass of a scenario has a line of the explorer's; the last one says whether there are more runs.
for scenario; do
	if "$explore" --exhaustive --bound "$bound" "$scenario" 2>&1; then
		echo "END $scenario"
	else
		echo "FAIL $scenario"
	fi
done | awk '
	$1 == "END" || $1 == "FAIL" {
		all = $1 == "END" && last ~ /, all tried/
		printf "%-20s %10d runs %8.2f s  %s\n", $2, runs, took, all ? "all tried" : $1 == "FAIL" ? "FAILED" : "not all tried"
		if ($1 == "FAIL")
			printf "%s", text
		fflush()
		scenarios++; complete += all; sum += runs; seconds += took
		text = last = ""; runs = took = 0
		next
	}
	$2 == "exhaustive" && $4 == "runs" { last = $0; runs = $3; took += $5 }
	{ text = text $0 "\n" }
	END {
		printf "%-20s %10d runs %8.2f s  %d of %d scenarios tried wholly\n", "total", sum, seconds, complete, scenarios
		exit complete < scenarios
	}'
