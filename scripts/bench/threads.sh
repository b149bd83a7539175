#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/bench/threads.sh - compares threads and locks, native against fibers.
#
#	threads.sh [--rounds N] [--seconds SECONDS] [--build DIRECTORY] [CASE...]
#
# Runs build/bench/threads natively and under fiberize in turn.  Prints every sample,
# then for each case the medians, and the median of native/fiberize within a round: how
# many times faster fiberize is.  Exit status 0 if all rounds could be run, whatever the
# result; 2 for a bad option.
cd "$(dirname "$0")/../.." || exit 2
name=threads.sh
. scripts/bench/common.inc

rounds=5 seconds=0.3
parse 'rounds seconds' "$@"
numbers "$rounds"
[[ $seconds =~ ^[0-9]*\.?[0-9]+$ ]] || die "$seconds: must be a number of seconds"
need "$build/bench/threads"
scratch

# sample ROUND SIDE COMMAND...: measures all cases once
sample()
{
	local round=$1 side=$2 code
	shift 2
	timeout 300 "$@" >"$work/out" 2>"$work/err"
	code=$?
	if [ $code -ne 0 ]; then
		[ $code != 2 ] || die "$(tail -n 5 "$work/err")"
		failed "$side, round $round" $code "$work/err"
	fi
	sed "s/^/$round $side /" "$work/out" | tee -a "$work/samples"
}

scripts/bench/machine.sh
echo "# $rounds rounds, $seconds s for each case"
echo "# round side case nanoseconds/operation"
for ((round = 1; round <= rounds; round++)); do
	# Change the order in each round, so that no side is always first.
	if ((round % 2)); then
		sample $round native "$build/bench/threads" -s "$seconds" "${operands[@]}"
		sample $round fiberize "$build/fiberize" "$build/bench/threads" -s "$seconds" "${operands[@]}"
	else
		sample $round fiberize "$build/fiberize" "$build/bench/threads" -s "$seconds" "${operands[@]}"
		sample $round native "$build/bench/threads" -s "$seconds" "${operands[@]}"
	fi
done

echo
awk -f scripts/bench/median.awk -f scripts/bench/samples.awk -f /dev/stdin "$work/samples" <<'A'
{ note($3, $1, $2, $4) }

END {
	# Design targets: how many times faster than natively each case should be.
	target["create_join"] = 30
	target["cond_ping_pong"] = target["sem_ping_pong"] = 20
	target["mutex_64"] = 5
	target["lock_unlock"] = target["getspecific"] = 1 / 1.1
	printf "%-16s %12s %12s   %s\n", "case", "native ns", "fiberize ns", "times faster"
	for (i = 1; i <= keys; i++) {
		c = order[i]
		m = ratio(c, "native", "fiberize")
		times = spread(m)
		printf "%-16s %12.1f %12.1f   %-22s%s\n", c, of(c, "native"), of(c, "fiberize"),
			times, c in target ? verdict(target[c], m >= target[c]) : ""
	}
}
A
