#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/model/coverage.sh RUNS|--files - which edges between basic blocks of the explored files do the explorer's runs
# take?  RUNS of each kind for each scenario, and those with one preemption.  Prints a table; the edges that no run took are
# in build/coverage/missed.txt, a line each, by file, function and line.  "make model-coverage" builds what it needs.
# --files: which are the explored files.  Exit status 2 if RUNS is no number, or nothing is built.
set -eu -o pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FZ_BUILD:-$root/build/coverage}
explore=$build/tests/model/explore
sched='announce|birth|cancel|carrier|carrier_idle|monitor|park|processor|provide|runq|sched|spawner|timer'
explored="(sched/($sched)|(sync|signal)/[a-z_]*|fiber/(join|pool)|backend/(backend|epoll|ring|ring_cancel))[.][ch]"

die() {
	echo "coverage.sh: $*" >&2
	exit 2
}

[ $# -eq 1 ] || die "one argument is needed: the number of runs of each kind for each scenario"
if [ "$1" = --files ]; then
	cd "$root/runtime"
	printf '%s\n' */*.[ch] | grep -xE "$explored"
	exit
fi
[[ $1 =~ ^[1-9][0-9]{0,8}$ ]] || die "not a number of runs: '$1'"
[ -x "$explore" ] || die "$explore is missing: run make model-coverage"
runs=$1

pass() {
	MODEL_EDGES=$build/edges.$1 "$explore" "${@:2}" >>"$build/runs.log"
}
rm -f "$build"/edges.* "$build/runs.log"
pass 0 --exhaustive --bound 1 --seconds 20
pass 1 --pct "$runs" --random "$runs"
pass 2 --pct "$runs" --random "$runs" --tso
pass 3 --pct "$runs" --random "$runs" --plain
pass 4 --pct "$runs" --random "$runs" --plain --tso
# Of each edge whether a run has taken it, and where it is: addr2line prints its function and "FILE:LINE".
sort -k 2 "$build"/edges.[0-9] | awk '$2 != last { if (last) print last, taken; last = $2; taken = 0 }
	{ taken += $1 } END { print last, taken }' >"$build/edges.all"
awk '{ print $1 }' "$build/edges.all" | addr2line -f -e "$explore" | paste - - |
	paste "$build/edges.all" - >"$build/edges.named"
awk -F '\t' -v explored="runtime/$explored:" -v missed="$build/missed.txt" '$3 ~ explored {
	sub(/^.*\/runtime\//, "", $3)
	sub(/ .*/, "", $3)
	split($3, place, ":")
	split($1, edge, " ")
	all[place[1]]++
	if (edge[2])
		taken[place[1]]++
	else
		print place[1], $2, place[2] | "sort -u -k1,1 -k3,3n >" missed
}
END {
	for (file in all) {
		printf "%-24s %4d of %4d  %3d %%\n", file, taken[file], all[file], 100 * taken[file] / all[file] | "sort"
		a += all[file]; t += taken[file]
	}
	close("sort")
	printf "%-24s %4d of %4d  %3d %%\n", "together", t, a, 100 * t / a
}' "$build/edges.named"
awk '{ for (i = 2; i < NF; i++) if ($(i + 1) == "runs") sum += $i } END { print sum " runs" }' "$build/runs.log"
