#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/reduce/compare.sh BOUND [SCENARIO...] - does the reduction (reduce.c) leave out no outcome?  Makes every run with up to
# BOUND deviations of these scenarios or of all, with the reduction and without, and compares what outcomes.h counts: the memory
# that the runs leave, and the orders of uses.  For each how many runs of how many were made, and the outcomes.
# FZ_BUILD: the build, if not build/.  Exit status 0 if all are the same, 1 if not, 2 if it cannot begin.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
differs=0
# shellcheck source=tests/model/bounded.inc
. "$root/tests/model/bounded.inc"

# "RUNS OUTCOMES" of the last pass, which has tried all; nothing if there is none.
outcomes_of()
{
	"$explore" --exhaustive --bound "$bound" --outcomes "$@" | tail -n 1 |
		sed -nE 's/^[a-z0-9_]+ +exhaustive +([0-9]+) runs .*, all tried, (.*)/\1 \2/p'
}

for scenario; do
	with=$(outcomes_of "$scenario")
	without=$(outcomes_of --no-reduction "$scenario")
	verdict=same
	[ -n "$with" ] && [ "${with#* }" = "${without#* }" ] || verdict=DIFFERENT differs=1
	printf '%-20s %9s of %9s runs  %s: %s\n' "$scenario" "${with%% *}" "${without%% *}" "$verdict" "${with#* }"
	[ "$verdict" = same ] || echo "   without reduction: ${without#* }"
done
exit $differs
