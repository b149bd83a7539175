#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/soak.sh - runs programs of tests/programs in random circumstances, one after the other, and
# compares each with its native run.
#
#	soak.sh --hours H [--first SEED] [--chaos] [--filter GLOB]
#	soak.sh --seed SEED[@COMMIT] [--times N] [--filter GLOB]
#	soak.sh --show SEED[@COMMIT] [--filter GLOB]
#
# A seed, a number of at most 18 digits, stands for a program, its number, a mode of tests/run.sh (backend,
# processors, features), the library as it is installed or the one that checks itself, faults of that one
# (runtime/base/fault.def: among them a monitor that looks 100 times more often or more seldom), and how
# many processes use the CPUs besides.  --seed runs a seed again, N times; --show prints what it stands for,
# runs nothing and writes no file.  The order of the threads is not in the seed.  The seed after
# 999999999999999999 is 0.
#
# A seed chooses among the programs that are built and that --filter selects: at another commit, or with
# another filter, it stands for another run.  --seed and --show refuse a COMMIT that is not checked out, and one
# that build/libfiberize.so and build/checked/libfiberize.so are not of: build/libexec/commit has another, a
# tracked file has been changed, or a source is newer than they are.
#
# --chaos: each run by rr in its chaos mode, which lets one thread run at a time, chooses among them at random, and
# records the run.  Such a seed is SEED+chaos, which --seed, --show and --first take, too; its mode has epoll, since
# rr knows no io_uring.  A failure leaves rr's trace, too, in build/tests/failures/soak.SEED+chaos.rr: "rr replay" of
# it is the same run, in gdb.  rr (Debian: rr) needs the CPU's performance counters, which few virtual machines have:
# without rr, or where it cannot record "true", the exit status is 2.
#
# A failure leaves build/tests/failures/soak.SEED.log, with the commit, the command, the options to run it
# again, what the program said, and the backtraces of all threads if it hangs or leaves a core file; the
# soak continues.  The last line is "N passed, N failed, next seed N"; exit status 1 on failure, 2 for a
# bad option.

set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=${FZ_BUILD:-$root/build}
installed=$build/libfiberize.so
checked=$build/checked/libfiberize.so
library=$installed
programs=$build/tests/programs
failures=$build/tests/failures
watch=$build/tests/helpers/watch
passed=0 failed=0 next=0 seeds=1000000000000000000
hours='' seed='' show='' chaos='' times=1 first=$(date +%s) filter='*' modes='' default_modes=none
# shellcheck source=tests/lib/modes.inc
. "$root/tests/lib/modes.inc"

die() {
	echo "soak.sh: $*" >&2
	exit 2
}

# number OPTION VALUE: prints the value in decimal, without leading zeros
number() {
	[[ $2 =~ ^[0-9]{1,18}$ ]] || die "$1: not a number of at most 18 digits: '$2'"
	echo $((10#$2))
}

# seed_of OPTION SEED[@COMMIT]: prints the seed, if the commit is the one that is checked out and built
seed_of() {
	local why number=${2%%@*}
	case $2 in
	*@*)	[ -n "$head" ] || die "$1 $2: $root has no git to compare the commit with: leave @${2#*@} out"
		[[ ${2#*@} =~ ^[0-9a-f]{4,40}$ ]] || die "$1 $2: not a commit: '${2#*@}'"
		[[ $head == "${2#*@}"* ]] || die "$1 $2: a seed of another commit than this one, ${head:0:12}"
		why=$(not_built_of "$head")
		[ -z "$why" ] || die "$1 $2: $why" ;;
	esac
	number "$1" "${number%+chaos}"
}

# up_to_date FILE BUILD VARIABLE...: is it newer than its sources?  The names in the Makefile are relative to it.
up_to_date() {
	env -u MAKEFLAGS make -s -q -C "$root" "B=${2#"$root"/}" "${@:3}" "${1#"$root"/}" >/dev/null 2>&1
}

# not_built_of COMMIT: says why the build is not known to be of this commit
not_built_of() {
	local described
	described=$(cat "$build/libexec/commit" 2>/dev/null)
	if [ "$(git -C "$root" rev-parse --verify --quiet "${described:-none}^{commit}")" != "$1" ]; then
		echo "$build says that it is of ${described:-no commit}"
	elif ! git -C "$root" diff --quiet HEAD; then
		echo "a file has been changed since"
	elif ! up_to_date "$installed" "$build"; then
		echo "$installed is older than its sources"
	elif ! up_to_date "$checked" "${checked%/*}" DEBUG=1 FAULTS=1; then
		echo "$checked is older than its sources"
	fi
}

head=$(git -C "$root" rev-parse HEAD 2>/dev/null)
commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null)
while [ $# -gt 0 ]; do
	case $1 in
	--chaos)	chaos=+chaos; shift; continue ;;
	--hours|--seed|--show|--times|--first|--filter)	;;
	*)		die "unknown option $1" ;;
	esac
	[ $# -ge 2 ] || die "$1 needs a value"
	case $1=$2 in
	--seed=*+chaos|--seed=*+chaos@*|--show=*+chaos|--show=*+chaos@*|--first=*+chaos)	chaos=+chaos ;;
	esac
	case $1 in
	--hours)
		[[ $2 =~ ^([0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)$ && $2 == *[1-9]* ]] ||
			die "--hours: not a positive number of hours: '$2'"
		hours=$2 ;;
	--seed)		seed=$(seed_of "$1" "$2") || exit ;;
	--show)		show=$(seed_of "$1" "$2") || exit ;;
	--times)
		times=$(number "$1" "$2") || exit
		[ "$times" -gt 0 ] || die "--times: not a positive number: '$2'" ;;
	--first)	first=$(number "$1" "${2%+chaos}") || exit ;;
	--filter)	filter=$2 ;;
	esac
	shift 2
done
case ${hours:+h}${seed:+s}${show:+w} in
h|s|w)	;;
*)	die "one of --hours, --seed and --show is needed" ;;
esac
for needed in "$installed" "$checked" "$watch"; do
	[ -n "$show" ] || [ -e "$needed" ] || die "$needed is missing: run make soak"
done

work=
burners=()

stop_burners() {
	[ ${#burners[@]} -eq 0 ] || kill "${burners[@]}" 2>/dev/null
	wait 2>/dev/null
	burners=()
}

clean_up() {
	stop_burners
	[ -z "$work" ] || rm -rf "$work"
}
trap clean_up EXIT
trap 'summary; exit 130' INT
trap 'summary; exit 143' TERM

summary() {
	echo "$passed passed, $failed failed, next seed $(((next + 1) % seeds))$chaos"
}

# In the same order under each locale.
mapfile -t names < <(for name in $(list_programs); do stressed "$name" && echo "$name"; done | LC_ALL=C sort)
[ ${#names[@]} -gt 0 ] || die "no program in $programs matches --filter '$filter'"

# Faults that no program may notice, however often they come.
faults=(futex_eintr futex_spurious late_completion no_sqe reordered_completions submit_again submit_busy
	wait_eintr long_tick short_tick late_submit wrong_load deny_kick)
# These cost 300 ms each.
slow_faults=(late_birth late_spare)

# Faults that are none for these programs, as patterns of NAME:FAULT:1/N.
# accept_there looks how soon an answer comes that is there already; by these faults it comes later than the call's
# without the library would.
# signal_timers waits until a process is at rest.  If every second wait for a futex ends at once, and that is each long
# sleep of the monitor, and each short one the other, it never is.
not_borne='@(accept_there:@(late_completion|late_submit|submit_again):*|signal_timers:futex_@(eintr|spurious):1/2)'

# draw N: sets drawn to a number from 0 to N - 1.  SplitMix64, whose state begins as the seed.  Not RANDOM: it
# has 32,768 seeds, and bash gives each subshell another one.
draw() {
	local z
	state=$((state - 0x61c8864680b583eb))
	z=$(((state ^ state >> 30 & 0x3ffffffff) * -0x40a7b892e31b1a47))
	z=$(((z ^ z >> 27 & 0x1fffffffff) * -0x6b2fb644ecceee15))
	z=$((z ^ z >> 31 & 0x1ffffffff))
	drawn=$(((z & 0x7fffffffffffffff) % $1))
}

# draw_of WORD...: sets drawn to one of the words
draw_of() {
	draw $#
	shift "$drawn"
	drawn=$1
}

# choose SEED: sets name, mode, number, variables, load, library, command
choose() {
	choose_run "$1"
	# shellcheck disable=SC2206,SC2207 # words
	command=($variables $(mode_env "$mode"))
	if [ -n "$chaos" ]; then
		command=(rr record --chaos "${command[@]/#/--env=}")
	else
		command=(env "${command[@]}")
	fi
}

choose_run() {
	local how
	state=$1
	draw_of "${names[@]}"; name=$drawn
	draw $((1 << 30)); number=$((drawn | 1))
	if [ -n "$chaos" ]; then
		draw_of epoll epoll old
	else
		draw_of fz fz fz epoll epoll old
	fi
	mode=$drawn
	draw 8; mode+=$((drawn + 1))
	load=0
	draw 3
	[ "$drawn" -ne 0 ] || { draw 8; load=$drawn; }
	library=$installed
	variables=
	draw 4; how=$drawn
	[ "$how" -eq 0 ] || library=$checked
	[ "$how" -ge 2 ] || return 0
	draw_of "${faults[@]}"; variables=FZ_FAULTS=$drawn
	draw 9; variables+=:1/$((drawn + 2))
	[ "$how" -eq 3 ] || return 0
	draw_of "${slow_faults[@]}"; variables+=,$drawn
	draw 9; variables+=:$((drawn + 1))
}

# bears_faults: may the program that is chosen have the faults that are?
bears_faults() {
	local fault=${variables#FZ_FAULTS=}
	# shellcheck disable=SC2053 # a pattern
	[[ $name:${fault%%,*} != $not_borne ]]
}

# What the seed stands for, in words.
choice() {
	echo "$name in mode $mode, number $number, load $load"
}

command_line() {
	local args
	args=$(arguments "$name" stress)
	echo "${command[*]} $programs/$name${args:+ ${args//\{seed\}/$number}}"
}

# one_run BASE WORD...: the program, with these words before it; the status is its own
one_run() {
	local base=$1 args
	shift
	args=$(arguments "$name" stress)
	rm -rf "$base.dir" "$base.traces" "$base.rr" "$base.rr.log"
	mkdir "$base.dir"
	(
		cd "$base.dir" || exit 2
		ulimit -c unlimited 2>/dev/null
		# shellcheck disable=SC2086 # words
		exec "$watch" -l 240 -t "$base.traces" env --default-signal "$@" "$programs/$name" \
			${args//\{seed\}/$number} >"$base.out" 2>"$base.err" </dev/null
	)
}

# Says why rr cannot record here; its reason is in the first line, behind a place in its source.
no_rr() {
	local reason
	if ! command -v rr >/dev/null; then
		echo "rr is missing"
	elif ! "$watch" rr record --chaos "--output-trace-dir=$work/true.rr" true >"$work/true.out" 2>&1 </dev/null; then
		reason=$(sed -nE 's/^\[[A-Z]+ [^]]*\] *//; /[^ ]/ { p; q }' "$work/true.out")
		echo "rr cannot record here: ${reason:-it does not say why}"
	fi
	rm -rf "$work/true.rr"
}

# Is the commit all that there is?
changes() {
	[ -z "$commit" ] || git -C "$root" diff --quiet HEAD 2>/dev/null || echo ", and changes to it"
}

report() {
	local core seed=$1$chaos log trace='' at=${commit:+@$commit}
	# A seed with a commit is refused while there are changes to it.
	[ -z "$(changes)" ] || at=''
	log=$failures/soak.$seed.log
	rm -rf "$failures/soak.$seed.rr"
	if [ -d "$work/fibers.rr" ] && mv "$work/fibers.rr" "$failures/soak.$seed.rr"; then
		trace=${failures#"$root"/}/soak.$seed.rr
	fi
	{
		echo "seed $seed: $(choice): $2"
		echo "commit: ${commit:-unknown, no git}$(changes); programs to choose among: ${#names[@]}"
		echo "again: tests/soak.sh --filter ${filter@Q} --seed $seed$at --times 100"
		echo "command: $(command_line)"
		[ -z "$trace" ] || echo "rr's trace: $trace"
		[ ! -s "$work/fibers.rr.log" ] || { echo "---- rr's log"; tail -n 40 "$work/fibers.rr.log"; }
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
	echo "FAIL seed $seed: $name in mode $mode${variables:+, $variables}: $2; see ${log#"$root"/}${trace:+ and $trace}"
}

# try SEED: 0 passed, 1 failed, 2 the mode or the fault does not apply, or the program fails natively, too
try() {
	local status native i
	choose "$1"
	applies "$mode" "$name" && bears_faults || return 2
	for ((i = 0; i < load; i++)); do
		(while :; do :; done) &
		burners+=($!)
	done
	if [ -n "$chaos" ]; then
		# What rr says of itself is nothing that the program says.
		one_run "$work/fibers" "RR_LOG_FILE=$work/fibers.rr.log" "${command[@]}" "--output-trace-dir=$work/fibers.rr"
	else
		one_run "$work/fibers" "${command[@]}"
	fi
	status=$?
	# With another number it may say something else.
	one_run "$work/native"
	native=$?
	stop_burners
	if [ $native -ne 0 ]; then
		[ $native -eq 77 ] || echo "seed $1$chaos: $name fails natively: $native"
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

if [ -n "$show" ]; then
	choose "$show"
	echo "seed $show$chaos${commit:+@$commit}: $(choice)"
	command_line
	exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/fz-soak.XXXXXX") || exit 2
mkdir -p "$failures" || exit 2
if [ -n "$chaos" ]; then
	refusal=$(no_rr)
	[ -z "$refusal" ] || die "--chaos: $refusal"
fi
end=$(($(date +%s) + $(LC_ALL=C awk -v h="${hours:-0}" 'BEGIN { s = h * 3600; printf "%d", int(s) + (s > int(s)) }')))
next=${seed:-$first}
for ((round = 0; ; round++)); do
	if [ -n "$seed" ]; then
		[ $round -lt "$times" ] || break
	else
		[ $round -eq 0 ] || [ "$(date +%s)" -lt $end ] || break
		next=$(((first + round) % seeds))
	fi
	try "$next"
	case $? in
	0)	passed=$((passed + 1)) ;;
	1)	failed=$((failed + 1)) ;;
	*)	[ -z "$seed" ] || echo "seed $seed$chaos cannot be run here: $(choice)" ;;
	esac
done
summary
[ $failed -eq 0 ] && [ $passed -gt 0 ]
