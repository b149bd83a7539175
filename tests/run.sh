#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/run.sh - runs all tests: static checks, unit tests, the programs in every
# mode, scripts.
#
#	run.sh [--modes LIST] [--filter GLOB] [--jobs N] [--timeout SECONDS]
#	       [--only KINDS] [--unit BINARY]...
#	run.sh --stress MINUTES [--seed S] [--modes LIST] [--filter GLOB]
#	       [--timeout SECONDS]
#
# LIST is comma-separated, of
#	native	as it is
#	fz	preloaded, processors as the machine has CPUs
#	fzN	preloaded, FIBERIZE_PROCESSORS=N (N is a number)
#	epoll	preloaded, FIBERIZE_BACKEND=epoll
#	epollN	the same, FIBERIZE_PROCESSORS=N
#	direct	preloaded, FIBERIZE_IO=direct; file_* and io_* only
#	ring	preloaded, FIBERIZE_IO=ring; likewise
#	old	preloaded, on epoll, and without every feature that an older kernel or
#		CPU need not have
#	oldN	the same, FIBERIZE_PROCESSORS=N
#	off	preloaded, FIBERIZE_DISABLE=1: every thread is a kernel thread
#	late	preloaded behind late_threads.so, which has every new thread begin up
#		to 20 ms late: what assumes that it comes first, or is ready after a
#		moment, is wrong
#	native-late	late_threads.so alone: is it the program that is wrong?
#	fz-noredirect	preloaded, FIBERIZE_REDIRECT=0
#	fz-refused	preloaded, where the system forbids to change code
# KINDS is comma-separated, of static,unit,programs,scripts, and the default is all.
# Under stress it is fz, and where fz, epoll and old have no N, each round chooses one.
# --unit BINARY takes that binary instead of all unit tests.
#
# The default of LIST is native,fz,fz1,fz8,direct,ring,epoll,old,off, and for programs
# that are about calls inside libc fz-noredirect and fz-refused too, for those about
# threads, locks and signals late; but not all for those that take seconds in each, and
# off for some.  Each program's output and exit status must be those of its native run,
# and nothing may come on stderr.  GLOB selects tests by name (thread_*, test_runq, microsocks, ...).
#
# Quiet when all is well: one line for each failure, with what it complains of and
# where its log is, and for each test that is skipped, because it exits with 77.  The
# last line is "N passed, N failed[, N skipped]"; exit status 1 on failure, 2 for
# a bad option.  What hangs leaves the backtraces of all its threads in
# build/tests/failures/.
#
# Many tests run beside each other on machines that stand still for a moment now and
# then.  What fails by a check of its own is run again when all others have ended: if it
# passes twice then, it is named as UNSTEADY, its log is kept, and it counts as passed;
# at most two are let off so.  A crash or a hang is a failure however rare it is, and
# --stress lets nothing off.
#
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2015,SC2046,SC2086

set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
build=${FZ_BUILD:-$root/build}
lib=$build/libfiberize.so
late=$build/tests/helpers/late_threads.so
programs=$build/tests/programs
failures=$build/tests/failures
features=$(sed -n 's/^FZ_WORDS_OPTION(without,[^"]*"\([a-z0-9,-]*\)".*/\1/p' runtime/base/options.def)

# Not tests by themselves, or run elsewhere.
not_tests=" legacy_server names_many "

# Arguments of a program in the matrix, and under stress; {seed} is a number.
arguments() {
	case $1 in
	stress_churn)	echo "{seed}" ;;
	sync_stress|life_stress)	[ "$2" = stress ] && echo 2 ;;
	thread_many)	[ "$2" = stress ] && echo 500 || echo 2000 ;;
	esac
}

# More time than others need, in seconds.  What has limits of its own for each step
# may take long on a busy machine.
time_for() {
	case $1 in
	tests/real/*|real/*)	echo 300 ;;
	launcher|check|coexist|install|libc|redirect)	echo 1200 ;;
	dns|forbidden|cancel_race|static/*)	echo 300 ;;
	sync_stress|life_stress|cond_shared|fork_*|exec_signals)	echo 120 ;;
	test_*|epoll_test_*|stress_*)	echo 300 ;;
	*)			echo "$limit" ;;
	esac
}

# Whether a program makes sense under stress: not if it is slow by nature.
stressed() {
	case $1 in
	setuid_threads)	return 1 ;;
	esac
}

die() {
	echo "run.sh: $*" >&2
	exit 2
}

stress_modes=fz
default_modes=native,fz,fz1,fz8,direct,ring,epoll,old,off
modes=
filter='*'
jobs=$(nproc)
limit=60
units=()
kinds=static,unit,programs,scripts
stress=
seed=

while [ $# -gt 0 ]; do
	case $1 in
	--modes|--filter|--jobs|--timeout|--only|--unit|--stress|--seed)
		[ $# -ge 2 ] || die "$1 needs a value" ;;
	esac
	case $1 in
	--modes)	modes=$2; shift 2 ;;
	--filter)	filter=$2; shift 2 ;;
	--jobs)		jobs=$2; shift 2 ;;
	--timeout)	limit=$2; shift 2 ;;
	--unit)		units+=("$2"); shift 2 ;;
	--only)		kinds=$2; shift 2 ;;
	--stress)	stress=$2; shift 2 ;;
	--seed)		seed=$2; shift 2 ;;
	*)		die "unknown option $1" ;;
	esac
done
[ -n "$modes" ] || modes=${stress:+$stress_modes}
[ -n "$modes" ] || modes=$default_modes
for n in "$jobs" "$limit" ${stress:+"$stress"} ${seed:+"$seed"}; do
	case $n in
	*[!0-9]*|'')	die "not a number: $n" ;;
	esac
done
for mode in ${modes//,/ }; do
	case $mode in
	native|fz|direct|ring|epoll|old|off|fz-noredirect|fz-refused)	;;
	native-late|late)	;;
	fz*[!0-9]*|old*[!0-9]*)	die "unknown mode $mode" ;;
	epoll*[!0-9]*)		die "unknown mode $mode" ;;
	fz[0-9]*|epoll[0-9]*|old[0-9]*)	;;
	*)			die "unknown mode $mode" ;;
	esac
done

for kind in ${kinds//,/ }; do
	case $kind in
	static|unit|programs|scripts)	;;
	*)	die "unknown kind $kind" ;;
	esac
done

# Criterion runs each test in a process, and with several at a time may wait for one
# that has ended: for good, in one of 60 runs beside others.
export CRITERION_JOBS=1

work=$(mktemp -d "${TMPDIR:-/tmp}/fz-run.XXXXXX") || exit 2
mkdir -p "$failures" || exit 2

clean_up() {
	local pid
	for pid in $(jobs -p); do
		kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Backtraces of every process in the session $1, to $2.
backtraces() {
	local pid
	command -v gdb >/dev/null || return
	for pid in $(ps -o pid= -s "$1" 2>/dev/null); do
		{
			echo "==== process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
			grep -E '^(State|Threads|SigBlk|SigPnd|ShdPnd)' "/proc/$pid/status"
			timeout -k 2 15 gdb -batch -nx -p "$pid" \
				-ex 'set pagination off' \
				-ex 'info threads' \
				-ex 'thread apply all bt 40' 2>/dev/null
		} >>"$2" 2>/dev/null
	done
}

# limited SECONDS BACKTRACES COMMAND...: runs the command in a session of its
# own; on a timeout takes backtraces, ends all of the session, answers 124.
limited() {
	local seconds=$1 traces=$2 pid dog status
	shift 2
	setsid -w "$@" &
	pid=$!
	(
		trap 'kill $nap 2>/dev/null; exit 0' TERM
		sleep "$seconds" &
		nap=$!
		wait $nap
		: >"$traces.timeout"
		# setsid forks only as a group leader, which it is not here.
		sid=$(ps -o sid= -p $pid | tr -d ' ')
		backtraces "$sid" "$traces"
		kill -KILL $(ps -o pid= -s "$sid") 2>/dev/null
	) >/dev/null 2>&1 &
	dog=$!
	wait $pid
	status=$?
	kill -TERM $dog 2>/dev/null
	wait $dog 2>/dev/null
	# Whatever it left behind goes as well.
	kill -KILL $(ps -o pid= -s $pid) 2>/dev/null
	if [ -e "$traces.timeout" ]; then
		rm -f "$traces.timeout"
		return 124
	fi
	return $status
}

# The environment of a mode, as words for env(1).
mode_env() {
	case $1 in
	native)	;;
	fz)	echo "LD_PRELOAD=$lib" ;;
	direct|ring)	echo "LD_PRELOAD=$lib FIBERIZE_IO=$1" ;;
	epoll)	echo "LD_PRELOAD=$lib FIBERIZE_BACKEND=epoll" ;;
	epoll*)	echo "LD_PRELOAD=$lib FIBERIZE_BACKEND=epoll FIBERIZE_PROCESSORS=${1#epoll}" ;;
	old)	echo "LD_PRELOAD=$lib FIBERIZE_BACKEND=epoll FIBERIZE_WITHOUT=$features" ;;
	old*)	echo "LD_PRELOAD=$lib FIBERIZE_BACKEND=epoll FIBERIZE_WITHOUT=$features" \
			"FIBERIZE_PROCESSORS=${1#old}" ;;
	off)	echo "LD_PRELOAD=$lib FIBERIZE_DISABLE=1" ;;
	late)	echo "LD_PRELOAD=$late:$lib" ;;
	native-late)	echo "LD_PRELOAD=$late" ;;
	fz-noredirect)	echo "LD_PRELOAD=$lib FIBERIZE_REDIRECT=0" ;;
	fz-refused)	echo "LD_PRELOAD=$lib $build/tests/helpers/forbid_exec_memory seccomp" ;;
	fz*)	echo "LD_PRELOAD=$lib FIBERIZE_PROCESSORS=${1#fz}" ;;
	esac
}

# Modes of the default for some programs only.
more_modes() {
	[ "$modes" = $default_modes ] || return
	case $1 in
	# It mixes two kinds of mutexes, which works with redirection only.
	libc_handle)	;;
	# A restarted read inside libc: the signal that the monitor sends ends it.
	stdio_signals)	;;
	stdio_*|fork_basic|exec_basic|mixed_rungs|proxy_chain)
		echo fz-noredirect fz-refused ;;
	esac
	case $1 in
	thread_*|mutex_*|cond_*|sem_*|barrier_*|rwlock_*|once_*)	echo late ;;
	signal_*|cancel_*|exec_signals)	echo late ;;
	esac
}

# Runs $name in $mode; stdout, stderr, status and traces to $work/$name.$mode.*
run_program() {
	local name=$1 mode=$2 how=$3 number=$4 base=$work/$1.$2 status args
	args=$(arguments "$name" "$how")
	mkdir -p "$base.dir"
	rm -f "$base.traces" "$base.dir"/core*
	(
		cd "$base.dir" || exit 2
		ulimit -c unlimited 2>/dev/null
		# Whoever started us may ignore SIGHUP, and the shell SIGINT.
		limited "$(time_for "$name")" "$base.traces" \
			env --default-signal $(mode_env "$mode") "$programs/$name" \
			${args//\{seed\}/$number} \
			>"$base.out" 2>"$base.err" </dev/null
	) 2>/dev/null
	status=$?
	echo $status >"$base.status"
	return $status
}

# What the files say, as lines below a failure's.
excerpt() {
	cat "$@" 2>/dev/null | grep -v '^$' | tail -n 6 | cut -c 1-300 | sed 's/^/\t/'
}

# Whether exit status $1 is that of a program which judged by itself, or aborted because of
# that and says so in file $2: not killed, not ended by us.
is_check() {
	[ "$1" -lt 124 ] || { [ "$1" = 134 ] && grep -qs '^tests/[a-z_/0-9]*[.]cc*:[0-9]' "$2"; }
}

# Keeps what is known of a failure; prints its line.
report() {
	local name=$1 mode=$2 why=$3 base=$work/$1.$2 log=$failures/$1.$2.log core
	{
		echo "$name in mode $mode: $why"
		echo "command: env $(mode_env "$mode") $programs/$name"
		echo "---- stdout (last lines)"; tail -n 40 "$base.out"
		echo "---- stderr (last lines)"; tail -n 40 "$base.err"
		for core in "$base.dir"/core*; do
			[ -e "$core" ] && command -v gdb >/dev/null || continue
			echo "---- core"
			timeout -k 2 30 gdb -batch -nx "$programs/$name" "$core" \
				-ex 'thread apply all bt 40' 2>/dev/null
		done
		if [ -s "$base.traces" ]; then
			echo "---- backtraces"; cat "$base.traces"
		fi
	} >"$log" 2>/dev/null
	case $why in
	"exit status "*)
		is_check "$(cat "$base.status")" "$base.err" &&
			is_check "$(cat "$work/$name.native.status")" "$work/$name.native.err" ||
			: >"$work/$name.hard" ;;
	*)	: >"$work/$name.hard" ;;
	esac
	echo "FAILED $name ($mode): $why; see ${log#"$root"/}"
	excerpt "$base.out" "$base.err"
}

# Judges a run that has ended against the native one; prints pass, skip or fail.
judge() {
	local name=$1 mode=$2 base=$work/$1.$2 native=$work/$1.native status want
	status=$(cat "$base.status")
	want=0
	[ -e "$native.status" ] && want=$(cat "$native.status")
	if [ "$status" = 124 ]; then
		report "$name" "$mode" "did not end within $(time_for "$name") s"
	elif [ "$status" = 77 ] && { [ "$mode" = native ] || [ "$want" = 77 ]; }; then
		echo "SKIP $name ($mode)"
	elif [ "$mode" = native ] && [ "$status" != 0 ]; then
		report "$name" "$mode" "exit status $status"
	elif [ "$status" != "$want" ]; then
		report "$name" "$mode" "exit status $status, natively $want"
	elif [ -s "$base.err" ]; then
		report "$name" "$mode" "wrote on stderr"
	elif [ "$mode" = native ]; then
		if [ "$(tail -n 1 "$base.out")" = EXIT-SUCCESS ]; then
			echo PASS
		else
			report "$name" "$mode" "does not end in EXIT-SUCCESS"
		fi
	elif cmp -s "$base.out" "$native.out"; then
		echo PASS
	else
		report "$name" "$mode" "output differs from native"
		diff "$native.out" "$base.out" >>"$failures/$name.$mode.log"
	fi
}

# Whether mode $1 makes a difference to program $2, and is worth its time.
applies() {
	case $1 in
	direct|ring)
		case $2 in
		file_*|io_*)	;;
		*)		return 1 ;;
		esac ;;
	fz8|old|off)
		[ "$modes" = $default_modes ] || return 0
		case $1.$2 in
		# Nothing of ours runs.
		off.*_basic|off.io_*|off.file_*|off.exit_*|off.*_calls)	;;
		off.*)	return 1 ;;
		esac
		case $2 in
		# Seconds each: with all modes in check-all.
		cond_shared|fork_churn|fork_daemon|fork_pdeathsig|fork_vfork|exit_matrix)
			return 1 ;;
		esac ;;
	esac
}

# One program in all modes, one after the other: a job.
job_program() {
	local name=$1 mode
	# Always natively first: that is what the others are compared with.
	run_program "$name" native matrix 1
	for mode in ${modes//,/ } $(more_modes "$name"); do
		applies "$mode" "$name" || continue
		[ "$mode" = native ] || run_program "$name" "$mode" matrix 1
		judge "$name" "$mode"
	done
	rm -rf "$work/$name".*.dir
}

# A unit test binary or a script: passes by its exit status.
job_command() {
	local name=$1 status log base
	shift
	base=$work/${name//\//_}
	log=$failures/${name//\//_}.log
	limited "$(time_for "$name")" "$base.traces" "$@" >"$base.out" 2>&1 </dev/null
	status=$?
	case $status in
	0)	echo PASS; return ;;
	77)	echo "SKIP $name: $(tail -n 1 "$base.out")"; return ;;
	esac
	{
		echo "$*: exit status $status"
		cat "$base.out"
		[ -s "$base.traces" ] && cat "$base.traces"
	} >"$log" 2>/dev/null
	is_check $status "$base.out" || : >"$work/${name//\//_}.hard"
	if [ $status = 124 ]; then
		echo "FAILED $name: did not end within $(time_for "$name") s; see ${log#"$root"/}"
	else
		echo "FAILED $name: exit status $status; see ${log#"$root"/}"
	fi
	excerpt "$base.out"
}

selected() {
	# shellcheck disable=SC2254
	case $1 in
	$filter)	return 0 ;;
	esac
	return 1
}

wants() {
	case ,$kinds, in
	*,"$1",*)	return 0 ;;
	esac
	return 1
}

# The checks that run nothing of ours: name and command.
list_static() {
	cat <<-END
	symbols $root/scripts/dev/check-symbols.sh $build
	layers $root/scripts/dev/check-layers.sh $build
	options $root/scripts/dev/gen-options.sh --check
	shellcheck shellcheck -x -P SCRIPTDIR $(shell_scripts)
	clang env -u MAKEFLAGS -u MAKELEVEL make -s -C $root check-clang
	END
}

shell_scripts() {
	echo .ci/run scripts/fiberize scripts/dev/*.sh scripts/bench/*.sh \
		scripts/package/deb.sh scripts/package/fiberize.bash \
		tests/*.sh tests/scripts/*.sh tests/real/*.sh
}

# The command that runs the unit test binary $1: one for another CPU than ours
# by an emulator.
unit_command() {
	case $1 in
	*_aarch64)	echo "qemu-aarch64 $1" ;;
	*)		echo "$1" ;;
	esac
}

list_programs() {
	local file name
	for file in "$programs"/*; do
		name=${file##*/}
		[ -f "$file" ] && [ -x "$file" ] || continue
		case $name in
		*.*)	continue ;;
		esac
		case $not_tests in
		*" $name "*)	continue ;;
		esac
		selected "$name" && echo "$name"
	done
}

run_stress() {
	local names=() choice name end round=0 number mode why
	IFS=, read -ra choice <<<"$modes"
	[ -n "$seed" ] || seed=$(( (RANDOM << 15 | RANDOM) + 1 ))
	for name in $(list_programs); do
		stressed "$name" || continue
		run_program "$name" native stress "$seed"
		if [ "$(cat "$work/$name.native.status")" = 0 ]; then
			names+=("$name")
		else
			judge "$name" native
		fi
	done
	[ ${#names[@]} -gt 0 ] || die "nothing to run in ${programs#"$root"/}"
	RANDOM=$((seed % 32768))
	end=$(($(date +%s) + stress * 60))
	while [ "$(date +%s)" -lt $end ]; do
		name=${names[RANDOM % ${#names[@]}]}
		mode=${choice[RANDOM % ${#choice[@]}]}
		case $mode in
		fz|epoll|old)	mode=$mode$((RANDOM % 8 + 1)) ;;
		esac
		applies "$mode" "$name" || continue
		number=$((RANDOM << 15 | RANDOM | 1))
		round=$((round + 1))
		run_program "$name" "$mode" stress $number
		why=$(judge "$name" "$mode")
		case $why in
		PASS|SKIP*)	continue ;;
		esac
		echo "$why"
		echo "seed $seed, round $round: $name in mode $mode, number $number" |
			tee -a "$failures/$name.$mode.log"
		echo "$((round - 1)) passed, 1 failed"
		exit 1
	done
	echo "$round passed, 0 failed"
	exit 0
}

case $modes$stress in
*fz*|*direct*|*ring*|*epoll*|*old*|*off*|*late*|*[0-9])
	[ -e "$lib" ] || die "$lib is missing: run make"
	[ -e "$late" ] || die "$late is missing: run make programs" ;;
esac

[ -n "$stress" ] && run_stress

rm -rf "$failures"/*.log "$failures/unsteady"

# Each line: kind, name, command.  Slow ones first, so that none is left over
# for the end.
{
	if wants scripts; then
		for script in tests/scripts/launcher.sh tests/scripts/coexist.sh tests/scripts/libc.sh tests/scripts/check.sh \
				tests/scripts/install.sh tests/scripts/forbidden.sh tests/scripts/redirect.sh tests/scripts/symbols.sh tests/scripts/dns.sh \
				tests/scripts/cancel_race.sh tests/scripts/layers.sh tests/real/*.sh; do
			name=${script#tests/}
			name=${name#scripts/}
			name=${name%.sh}
			[ -f "$script" ] && selected "${name##*/}" &&
				echo "command $name $root/$script"
		done
	fi
	if wants static; then
		list_static | while read -r name command; do
			selected "$name" && echo "command static/$name $command"
		done
	fi
	if wants unit; then
		if [ ${#units[@]} -eq 0 ]; then
			units=("$build"/tests/unit/* "$build"/tests/arch/*)
		fi
		for unit in "${units[@]}"; do
			name=${unit##*/}
			[ -f "$unit" ] && [ -x "$unit" ] || continue
			case $name in
			*.*)	continue ;;
			esac
			selected "$name" && echo "command $name $(unit_command "$unit")"
			# And those that start the runtime, on the other backend.
			case $name in
			test_arch*|stress_*|test_ring)	continue ;;
			esac
			selected "epoll_$name" && echo "command epoll_$name" \
				"env FIBERIZE_BACKEND=epoll $(unit_command "$unit")"
		done
	fi
	wants programs && for name in $(list_programs); do
		echo "program $name"
	done
} >"$work/list"

number=0
while read -r kind name command; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	number=$((number + 1))
	"job_$kind" "$name" $command >"$work/result.$number" &
done <"$work/list"
wait

failed() {
	grep -q '^FAILED' "$1"
}

# Whether job $1, that is line $1 of the list, failed by chance: alone it passes twice.
is_unsteady() {
	local kind name command
	read -r kind name command < <(sed -n "$1p" "$work/list")
	[ $unsteady -lt 2 ] && [ ! -e "$work/${name//\//_}.hard" ] || return
	mkdir -p "$failures/unsteady"
	mv "$failures/${name//\//_}".*log "$failures/unsteady/"
	"job_$kind" "$name" $command >"$work/again.1"
	"job_$kind" "$name" $command >"$work/again.2"
	! failed "$work/again.1" && ! failed "$work/again.2" && return
	# Where the line of the failure says that they are.
	mv "$failures/unsteady/${name//\//_}".*log "$failures/"
	return 1
}

passed=0 failed=0 skipped=0 unsteady=0
for ((i = 1; i <= number; i++)); do
	if failed "$work/result.$i" && is_unsteady $i; then
		sed 's,^FAILED\(.*failures\),UNSTEADY\1/unsteady,' "$work/result.$i" | grep -v '^PASS'
		cp "$work/again.2" "$work/result.$i"
		unsteady=$((unsteady + 1))
	fi
	while IFS= read -r line; do
		case $line in
		PASS)	passed=$((passed + 1)) ;;
		SKIP*)	skipped=$((skipped + 1)); echo "SKIPPED ${line#SKIP }" ;;
		FAILED*)	failed=$((failed + 1)); echo "$line" ;;
		*)	echo "$line" ;;
		esac
	done <"$work/result.$i"
done
if [ $skipped -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
