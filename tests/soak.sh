#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/soak.sh - runs programs of tests/programs in random circumstances, one after the other, and
# compares each with its native run.
#
#	soak.sh --hours H [--first SEED] [--filter GLOB]
#	soak.sh --seed SEED [--times N]
#
# A seed stands for a program, its number, a mode of tests/run.sh (backend, processors, features), the
# library as it is installed or the one that checks itself, faults of that one (runtime/base/faults.def:
# among them a monitor that looks 100 times more often or more seldom), and how many processes use the
# CPUs besides.  --seed runs one again, N times; the order of the threads is not in the seed.
#
# A failure leaves build/tests/failures/soak.SEED.log, with the command, what it said, and the
# backtraces of all threads if it hangs or leaves a core file; then it goes on.  The last line is "N passed,
# N failed, next seed N"; exit status 1 on failure, 2 for a bad option.

set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=${FZ_BUILD:-$root/build}
installed=$build/libfiberize.so
checked=$build/checked/libfiberize.so
library=$installed
programs=$build/tests/programs
failures=$build/tests/failures
watch=$build/tests/helpers/watch
passed=0 failed=0 next=0
hours='' seed='' times=1 first=$(date +%s) filter='*' modes='' default_modes=none
# shellcheck source=tests/lib/modes.inc
. "$root/tests/lib/modes.inc"

die() {
	echo "soak.sh: $*" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || die "$1 needs a value"
	case $1 in
	--hours)	hours=$2 ;;
	--seed)		seed=$2 ;;
	--times)	times=$2 ;;
	--first)	first=$2 ;;
	--filter)	filter=$2 ;;
	*)		die "unknown option $1" ;;
	esac
	shift 2
done
for n in "$times" "$first" ${seed:+"$seed"}; do
	case $n in
	*[!0-9]* | '')	die "not a number: $n" ;;
	esac
done
[ -n "$hours$seed" ] || die "--hours or --seed is needed"
for needed in "$installed" "$checked" "$watch"; do
	[ -e "$needed" ] || die "$needed is missing: run make soak"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/fz-soak.XXXXXX") || exit 2
mkdir -p "$failures" || exit 2
burners=()

stop_burners() {
	[ ${#burners[@]} -eq 0 ] || kill "${burners[@]}" 2>/dev/null
	wait 2>/dev/null
	burners=()
}

clean_up() {
	stop_burners
	rm -rf "$work"
}
trap clean_up EXIT
trap 'summary; exit 130' INT
trap 'summary; exit 143' TERM

summary() {
	echo "$passed passed, $failed failed, next seed $((next + 1))"
}

mapfile -t names < <(for name in $(list_programs); do stressed "$name" && echo "$name"; done)
[ ${#names[@]} -gt 0 ] || die "nothing to run in $programs"

# Faults that no program may notice, however often they come.
faults=(futex_eintr futex_spurious late_completion no_sqe reordered_completions submit_again submit_busy
	wait_eintr long_tick short_tick late_submit wrong_load deny_kick)
# These cost 300 ms each.
slow_faults=(late_birth late_spare)

# choose SEED: sets name, mode, number, variables, load
choose() {
	local how
	RANDOM=$(($1 % 32768))
	name=${names[(RANDOM << 15 | RANDOM) % ${#names[@]}]}
	number=$((RANDOM << 15 | RANDOM | 1))
	mode=$(printf '%s\n' fz fz fz epoll epoll old | sed -n "$((RANDOM % 6 + 1))p")$((RANDOM % 8 + 1))
	load=$((RANDOM % 3 == 0 ? RANDOM % 8 : 0))
	library=$installed
	variables=
	how=$((RANDOM % 4))
	[ $how -ne 0 ] && library=$checked
	case $how in
	2)	variables=FZ_FAULTS=${faults[RANDOM % ${#faults[@]}]}:1/$((RANDOM % 9 + 2)) ;;
	3)	variables=FZ_FAULTS=${faults[RANDOM % ${#faults[@]}]}:1/$((RANDOM % 9 + 2))
		variables+=,${slow_faults[RANDOM % ${#slow_faults[@]}]}:$((RANDOM % 9 + 1)) ;;
	esac
}

# one_run BASE WORD...: the program, with these words for env(1) before it; the status is its own
one_run() {
	local base=$1 args
	shift
	args=$(arguments "$name" stress)
	rm -rf "$base.dir" "$base.traces"
	mkdir "$base.dir"
	(
		cd "$base.dir" || exit 2
		ulimit -c unlimited 2>/dev/null
		# shellcheck disable=SC2086 # words
		exec "$watch" -l 240 -t "$base.traces" env --default-signal "$@" "$programs/$name" \
			${args//\{seed\}/$number} >"$base.out" 2>"$base.err" </dev/null
	)
}

report() {
	local core log=$failures/soak.$1.log
	{
		echo "seed $1: $name in mode $mode, number $number, load $load: $2"
		echo "again: tests/soak.sh --seed $1 --times 100"
		echo "command: env $variables $(mode_env "$mode") $programs/$name"
		echo "---- stdout (last lines)"; tail -n 40 "$work/fibers.out"
		echo "---- stderr (last lines)"; tail -n 40 "$work/fibers.err"
		for core in "$work/fibers.dir"/core*; do
			[ -e "$core" ] || continue
			echo "---- core file"
			timeout -k 2 120 "$build/fiberize" bt --core "$core" 2>&1
			timeout -k 2 60 gdb -batch -nx "$programs/$name" "$core" \
				-ex 'thread apply all bt 40' 2>/dev/null
		done
		[ ! -s "$work/fibers.traces" ] || { echo "---- backtraces"; cat "$work/fibers.traces"; }
	} >"$log" 2>/dev/null
	echo "FAIL seed $1: $name in mode $mode${variables:+, $variables}: $2; see ${log#"$root"/}"
}

# try SEED: 0 passed, 1 failed, 2 the mode does not apply, or the program fails natively, too
try() {
	local status native i
	choose "$1"
	applies "$mode" "$name" || return 2
	for ((i = 0; i < load; i++)); do
		(while :; do :; done) &
		burners+=($!)
	done
	# shellcheck disable=SC2046,SC2086 # words
	one_run "$work/fibers" $variables $(mode_env "$mode")
	status=$?
	# With another number it may say something else.
	one_run "$work/native"
	native=$?
	stop_burners
	if [ $native -ne 0 ]; then
		[ $native -eq 77 ] || echo "seed $1: $name fails natively: $native"
		return 2
	elif [ $status -eq 77 ]; then
		# It finds that it cannot be run here just now.
		return 2
	elif [ $status -ne 0 ]; then
		report "$1" "$([ $status -eq 124 ] && echo hangs || echo "exit status $status")"
		return 1
	elif [ -s "$work/fibers.err" ]; then
		report "$1" "wrote on stderr"
		return 1
	elif ! cmp -s "$work/fibers.out" "$work/native.out"; then
		report "$1" "output differs from native"
		return 1
	fi
}

end=$(($(date +%s) + $(awk -v h="${hours:-0}" 'BEGIN { printf "%d", h * 3600 }')))
next=${seed:-$first}
for ((round = 0; ; round++)); do
	if [ -n "$seed" ]; then
		[ $round -lt "$times" ] || break
	else
		[ "$(date +%s)" -lt $end ] || break
		next=$((first + round))
	fi
	try "$next"
	case $? in
	0)	passed=$((passed + 1)) ;;
	1)	failed=$((failed + 1)) ;;
	esac
done
summary
[ $failed -eq 0 ] && [ $passed -gt 0 ]
