#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/model/explore.sh HOURS - explore with new seeds, round after round: PCT and random, with and without store
# buffers, points at atomic accesses alone and at all; as many explorers at once as there are CPUs.  Runs one round at
# least, and ends at a signal or after a failure, once those that began before it have ended, too: tests/model/replay
# runs its seed again.  Says which seeds it has used, and last how many runs there were, by the lines of the
# explorers, whose lines mix.  FZ_BUILD: the build, if not build/.  Exit status: the explorer's if it is not 0 (1 for a
# failure), 2 if it cannot begin, 129, 130 or 143 at SIGHUP, SIGINT or SIGTERM.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/model/explorer.inc
. "$root/tests/model/explorer.inc"

[ $# -eq 1 ] || die "one argument is needed, the number of hours; these are $#"
case $1 in
*[!0-9.]* | *.*.* | ???????????*)	die "not a number of hours: '$1'" ;;
*[1-9]*)	;;
*)	die "not a positive number of hours: '$1'" ;;
esac
need_explorer
end=$(($(date +%s) + $(LC_ALL=C awk -v h="$1" 'BEGIN { s = h * 3600; printf "%d", int(s) + (s > int(s)) }')))
first=$(($(date +%s) * 1000))
begun=$first
cpus=$(nproc)
# Of those that run, the oldest first: process id and first seed.
running=()

# leave STATUS WORDS: the awk below says the totals when nobody writes to it any more.
leave()
{
	local unfinished=${running[0]-"- $first"}
	trap '' HUP INT TERM
	# shellcheck disable=SC2046 # words
	kill $(jobs -pr) 2>/dev/null || :
	[ -z "$2" ] || echo "$2; next seed ${unfinished#* }"
	exec >&-
	wait "$counter" || exit 3
	exit "$1"
}

exec > >(
	trap '' HUP INT TERM
	LC_ALL=C exec awk '
		{ print; fflush() }
		$4 == "runs" { runs += $3; took += $5 }
		END { printf "%d runs in %.1f s of CPU time, %.0f schedules per second\n", runs, took, took ? runs / took : 0 }'
)
counter=$!
trap 'leave 129 ended' HUP
trap 'leave 130 interrupted' INT
trap 'leave 143 ended' TERM
echo "seeds from $first"

# In the background, for a signal does not end the wait for one in the foreground.  Not "wait -n", which may miss one
# that has ended before.
await_oldest()
{
	local status=0
	wait "${running[0]% *}" || status=$?
	[ $status -eq 0 ] || leave $status ''
	running=("${running[@]:1}")
}

while [ "$(date +%s)" -lt "$end" ] || [ "$first" -eq "$begun" ]; do
	for more in "" --tso --plain "--plain --tso"; do
		[ ${#running[@]} -lt "$cpus" ] || await_oldest
		# shellcheck disable=SC2086 # words
		"$explore" --first "$first" --pct 5000 --random 5000 $more &
		running+=("$! $first")
	done
	first=$((first + 10000))
done
while [ ${#running[@]} -gt 0 ]; do
	await_oldest
done
leave 0 "nothing found"
