#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/run.sh - runs all tests: static checks, unit tests, the programs in every
# mode, scripts.
#
#	run.sh [--modes LIST] [--filter GLOB] [--jobs N] [--timeout SECONDS]
#	       [--only KINDS] [--unit BINARY]... [--times] [--all]
#	run.sh --stress MINUTES [--seed S] [--modes LIST] [--filter GLOB]
#	       [--timeout SECONDS]
#
# LIST is comma-separated, of
#	native	as it is
#	fz	preloaded, processors as the machine has CPUs
#	fzN	preloaded, FIBERIZE_PROCESSORS=N (N is a number)
#	epoll	preloaded, FIBERIZE_BACKEND=epoll
#	epollN	like epoll, FIBERIZE_PROCESSORS=N
#	direct	preloaded, FIBERIZE_IO=direct; file_* and io_* only
#	ring	preloaded, FIBERIZE_IO=ring; file_* and io_* only
#	old	preloaded, on epoll, and without every feature that an older kernel or
#		CPU need not have
#	oldN	like old, FIBERIZE_PROCESSORS=N
#	off	preloaded, FIBERIZE_DISABLE=1: every thread is a kernel thread
#	late	preloaded behind late_threads.so, which delays the start of every new thread by up
#		to 20 ms: finds code that assumes a new thread runs first, or is ready after a
#		moment
#	native-late	late_threads.so alone: tells whether the program itself is wrong
#	fz-noredirect	preloaded, FIBERIZE_REDIRECT=0
#	fz-refused	preloaded, where the system forbids changing code
# KINDS is comma-separated, of static,unit,programs,scripts, and the default is all.
# Under stress it is fz, and where fz, epoll and old have no N, each round chooses one.
# --unit BINARY takes that binary instead of all unit tests.
#
# The default of LIST is native,fz,fz1,fz8,direct,ring,epoll,old, and for programs
# that are about calls inside libc fz-noredirect and fz-refused too, for those about
# threads, locks and signals late; but not all for those that take seconds in each, nor
# old for some (tests/lib/modes.inc).  Each program's output and exit status must be those
# of its native run, and nothing may come on stderr.  GLOB selects tests by name (thread_*,
# test_runq, @(microsocks|redis), ...).  --times says at the end which 20 took longest: seconds that
# passed, and of CPU time.  --all adds the scripts that take minutes of CPU time, and tests of the
# developers' tools; programs and scripts then try more often to meet a race (FZ_ALL).
#
# Each case counts as one: a program in a mode, a unit test, a line PASS, FAIL or SKIP of a
# script (tests/lib/judge.inc), a static check.  Printed are, when all is well, the cases
# that are skipped; otherwise a line for each failure, with what it complains of and where
# its log is.  The last line is "N passed, N failed[, N skipped]"; exit status 1 on failure,
# 2 for a bad option.
#
# Nothing is run a second time, and no time is judged, but how late the best of many timed
# waits ends (time_late, test_epoll), and that something hangs:
# tests/helpers/watch.c says what that means on a machine that may be busy, and leaves the
# backtraces of all threads in build/tests/failures/.  SECONDS, for a program, is how long it
# may compute, and how long it may take on an idle machine.  Much waits, so --jobs is three
# times the number of CPUs unless given.
#
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2015,SC2046,SC2086

set -u
# A shell has what it runs in the background ignore SIGINT and SIGQUIT, and nohup SIGHUP; so would all tests.
[ -n "${FZ_SIGNALS-}" ] || FZ_SIGNALS=default exec env --default-signal "$0" "$@"
cd "$(dirname "$0")/.." || exit 2
root=$PWD
build=${FZ_BUILD:-$root/build}
library=$build/libfiberize.so
programs=$build/tests/programs
failures=$build/tests/failures
watch=$build/tests/helpers/watch

# Sets most, in seconds: more time than others need.
time_for() {
	case $1 in
	# All programs of the machine: more, the more packages it has.
	scripts/everywhere_programs)	most=7200 ;;
	scripts/*|real/*)	most=1200 ;;
	static/*|unit/*)	most=600 ;;
	sync_stress|life_stress|cond_shared|fork_*|exec_signals)	most=$((2 * limit)) ;;
	*)			most=$limit ;;
	esac
}

die() {
	echo "run.sh: $*" >&2
	exit 2
}

stress_modes=fz
default_modes=native,fz,fz1,fz8,direct,ring,epoll,old
modes=
filter='*'
jobs=$((3 * $(nproc)))
limit=120
times=
slow="attaches answers bench_chromium everywhere_programs fleet fuzz_corpus kubernetes_policy oci oci_all oci_cdi package symbols layers"
long=
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
	--times)	times=1; shift ;;
	--all)		long=$slow; shift ;;
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
. tests/lib/modes.inc
for mode in ${modes//,/ }; do
	is_mode "$mode" || die "unknown mode $mode"
done

for kind in ${kinds//,/ }; do
	case $kind in
	static|unit|programs|scripts)	;;
	*)	die "unknown kind $kind" ;;
	esac
done

# shellcheck source=tests/lib/priority.inc
. tests/lib/priority.inc

# Criterion runs each test in a process, and with several at a time may wait for one
# that has ended: for good, in one of 60 runs beside others.
export CRITERION_JOBS=1
# Scripts that try often to meet a race do so with --all.
export FZ_ALL=$long

work=$(mktemp -d "${TMPDIR:-/tmp}/fz-run.XXXXXX") || exit 2
mkdir -p "$failures" || exit 2

# Each test is below a watch, which ends when its parent does.
clean_up() {
	local pids
	pids=$(jobs -p)
	[ -z "$pids" ] || kill -TERM $pids 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The environment of each mode, since there are thousands of runs: a command less for each counts.
declare -A environment
for mode in native late fz-noredirect fz-refused ${modes//,/ }; do
	environment[$mode]=$(mode_env "$mode")
done

# Runs $name in $mode; stdout, stderr, status and traces to $work/$name.$mode.*
run_program() {
	local name=$1 mode=$2 how=$3 number=$4 base=$work/$1.$2 args most
	args=$(arguments "$name" "$how")
	[ -n "${environment[$mode]+set}" ] || environment[$mode]=$(mode_env "$mode")
	time_for "$name"
	if [ -d "$base.dir" ]; then
		rm -f "$base.traces" "$base.dir"/core*
	else
		mkdir -p "$base.dir"
	fi
	(
		cd "$base.dir" || exit 2
		ulimit -c unlimited 2>/dev/null
		# Whoever started us may ignore SIGHUP, and the shell SIGINT.
		exec "$watch" -l "$most" -t "$base.traces" \
			env --default-signal ${environment[$mode]} "$programs/$name" \
			${args//\{seed\}/$number} \
			>"$base.out" 2>"$base.err" </dev/null
	)
	echo $? >"$base.status"
}

# What the files say, as lines below a failure's.
excerpt() {
	cat "$@" 2>/dev/null | grep -vE '^(PASS .*|SKIP .*|)$' | tail -n 6 | cut -c 1-300 |
		sed 's/^/\t/'
}

# Keeps what is known of a failure; prints its line.
report() {
	local name=$1 mode=$2 why=$3 base=$work/$1.$2 log=$failures/$1.$2.log core
	{
		echo "$name in mode $mode: $why"
		echo "command: env ${environment[$mode]} $programs/$name"
		echo "---- stdout (last lines)"; tail -n 40 "$base.out"
		echo "---- stderr (last lines)"; tail -n 40 "$base.err"
		for core in "$base.dir"/core*; do
			[ -e "$core" ] && command -v gdb >/dev/null || continue
			echo "---- core"
			timeout -k 2 60 gdb -batch -nx "$programs/$name" "$core" \
				-ex 'thread apply all bt 40' 2>/dev/null
		done
		if [ -s "$base.traces" ]; then
			echo "---- backtraces"; cat "$base.traces"
		fi
	} >"$log" 2>/dev/null
	echo "FAIL $name ($mode): $why; see ${log#"$root"/}"
	excerpt "$base.out" "$base.err"
}

# Judges a run that has ended against the native one: prints its line.
judge() {
	local name=$1 mode=$2 base=$work/$1.$2 native=$work/$1.native status want
	read -r status <"$base.status"
	want=0
	[ -e "$native.status" ] && read -r want <"$native.status"
	if [ "$status" = 124 ]; then
		report "$name" "$mode" "hangs"
	elif [ "$status" = 77 ] && [ "$mode" = native ] || [ "$want.$status" = 77.77 ] || [ "$want.$status" = 77.0 ]; then
		echo "SKIP $name ($mode)"
	elif [ "$mode" = native ] && [ "$status" != 0 ]; then
		report "$name" "$mode" "exit status $status"
	elif [ "$status" != "$want" ]; then
		report "$name" "$mode" "exit status $status, natively $want"
	elif [ -s "$base.err" ]; then
		report "$name" "$mode" "wrote on stderr"
	elif [ "$mode" = native ]; then
		if [ "$(tail -n 1 "$base.out")" = EXIT-SUCCESS ]; then
			echo "PASS $name ($mode)"
		else
			report "$name" "$mode" "does not end in EXIT-SUCCESS"
		fi
	elif cmp -s "$base.out" "$native.out"; then
		echo "PASS $name ($mode)"
	else
		report "$name" "$mode" "output differs from native"
		diff "$native.out" "$base.out" >>"$failures/$name.$mode.log"
	fi
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

# The lines PASS, FAIL and SKIP of command $1, whose output is $2.out, or, from Criterion,
# $2.tap; of one that has no such lines, one by its exit status $3.
cases() {
	if [ -s "$2.tap" ]; then
		sed -nE 's/^not ok - ([^ ]+).*/FAIL \1: see below/p
			s/^ok - ([^ ]+) .*# SKIP *(.*)/SKIP \1: \2/p; t
			s/^ok - ([^ ]+).*/PASS \1/p' "$2.tap"
	else
		grep -aE '^(PASS|FAIL|SKIP) ' "$2.out"
	fi >"$2.cases"
	sed "s,^\(....\) ,\1 $1: ," "$2.cases"
	case $3 in
	0)	[ -s "$2.cases" ] || echo "PASS $1" ;;
	77)	[ -s "$2.cases" ] || echo "SKIP $1: $(tail -n 1 "$2.out")" ;;
	124)	echo "FAIL $1: hangs" ;;
	*)	grep -q '^FAIL' "$2.cases" || echo "FAIL $1: exit status $3" ;;
	esac
}

# A script, a static check or the tests in a unit test binary: a job.
job_command() {
	local name=$1 base log most
	time_for "$name"
	shift
	base=$work/${name//\//_}
	log=$failures/${name//\//_}.log
	"$watch" -l "$most" -t "$base.traces" "${@//@TAP@/$base.tap}" \
		>"$base.out" 2>&1 </dev/null
	cases "$name" "$base" $? >"$base.lines"
	grep -q '^FAIL' "$base.lines" && {
		echo "$*"
		cat "$base.out"
		[ -s "$base.traces" ] && cat "$base.traces"
	} >"$log" 2>/dev/null
	sed "/^FAIL/s,\$,; see ${log#"$root"/}," "$base.lines"
	[ ! -e "$log" ] || excerpt "$base.out"
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
	sizes $root/scripts/dev/check-sizes.sh
	options $root/scripts/dev/gen-options.sh --check
	commands $root/scripts/dev/check-commands.sh
	lists $root/scripts/dev/check-lists.sh
	shellcheck shellcheck $(shellcheck_how) $(shell_scripts)
	pyflakes pyflakes3 $build/gdb.py $root/tests/lib/answers.py $root/tests/lib/page.py $root/tests/lib/sites.py $root/tests/kubernetes/cluster.py $root/tests/lib/frames.gdb.py $root/tests/lib/loading.gdb.py $root/scripts/bench/starts.py $root/scripts/bench/programs
	END
	[ -z "$long" ] || echo "clang env -u MAKEFLAGS -u MAKELEVEL make -s -C $root check-clang"
}

# With --all it follows "source", too, which takes most of its time: variables of other files.
shellcheck_how() {
	[ -n "$long" ] && echo "-x -P SCRIPTDIR" || echo "-e SC1091,SC2034,SC2154"
}

shell_scripts() {
	echo .ci/run scripts/fiberize scripts/dev/*.sh scripts/bench/*.sh \
		scripts/package/*.sh scripts/package/fiberize.bash scripts/kubernetes/*.sh scripts/service/*.sh \
		tests/*.sh tests/kubernetes/*.sh tests/model/*.sh tests/model/replay tests/scripts/*/*.sh tests/real/*.sh
}

# The command that runs the unit test binary $1: one for another CPU than ours
# by an emulator.
unit_command() {
	case ${1##*/} in
	*_aarch64)	echo "qemu-aarch64 $1" ;;
	test_*)		echo "$1 --tap=@TAP@" ;;
	*)		echo "$1" ;;
	esac
}

# Scripts by how long they take, longest first, so that none is left over for the end; each is in a room
# of tests/scripts.  Those that are not here take minutes, or test tools of the developers: --all adds those of
# "long", real/look_servers and real/aarch64_servers; "make check-glibc" runs glibc-tests, "make check-aarch64"
# aarch64; "make fuzz" runs fuzz with more files.
list_scripts() {
	local script found
	local quick="launcher_bench launcher_bench_errors bench_report programs_bench uring_server model model_reach faults install coexist inspect
		inspect_ps inspect_kernel inspect_changes inspect_core inspect_elsewhere inspect_files inspect_places top top_screen trace libc cpus check
		check_secure check_odd check_running service service_calls service_files services_page kubernetes pods_page status texts burst launcher_programs launcher_options launcher_profiles
		launcher_exec launcher_children fuzz forbidden everywhere everywhere_roots starts messages send_calls monitoring stat stats redirect dns cancel_race soak spin watch in_time"
	for script in tests/scripts/*/*.sh; do
		script=${script##*/}
		[[ " $quick $slow glibc-tests aarch64 " = *[[:space:]]"${script%.sh}"[[:space:]]* ]] ||
			die "$script is in no list, so nobody runs it: name it in tests/run.sh"
	done
	for script in $long $quick; do
		found=("$root/tests/scripts"/*/"$script.sh")
		[ -e "${found[0]}" ] || die "no room of tests/scripts has a $script.sh"
		[ ${#found[@]} -eq 1 ] || die "two rooms of tests/scripts have a $script.sh"
		selected $script && echo "command scripts/$script ${found[0]}"
	done
	for script in tests/real/*.sh; do
		script=${script#tests/}
		script=${script%.sh}
		# Minutes on a busy machine; or they need the library for another CPU.
		case $script in
		real/look_servers|real/aarch64_servers)	[ -n "$long" ] || continue ;;
		esac
		selected "${script#*/}" && echo "command $script $root/tests/$script.sh"
	done
}

list_units() {
	local unit name
	[ ${#units[@]} -gt 0 ] || units=("$build"/tests/unit/* "$build"/tests/arch/*)
	for unit in "${units[@]}"; do
		name=${unit##*/}
		[ -f "$unit" ] && [ -x "$unit" ] || continue
		case $name in
		*.*)	continue ;;
		esac
		selected "$name" && echo "command unit/$name $(unit_command "$unit")"
		# And those that start the runtime, on the other backend.
		case $name in
		test_arch*|stress_*|test_ring|test_turn)	continue ;;
		esac
		selected "epoll_$name" && echo "command unit/epoll_$name" \
			"env FIBERIZE_BACKEND=epoll $(unit_command "$unit")"
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
		PASS*|SKIP*)	continue ;;
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
	[ -e "$library" ] || die "$library is missing: run make tests"
	[ -e "$late" ] || die "$late is missing: run make tests" ;;
esac

[ -x "$watch" ] || die "$watch is missing: run make tests"

[ -n "$stress" ] && run_stress

rm -rf "$failures"/*.log

# Each line: kind, name, command.
{
	wants scripts && list_scripts
	wants static && list_static | while read -r name command; do
		selected "$name" && echo "command static/$name $command"
	done
	wants unit && list_units
	wants programs && for name in $(list_programs); do
		echo "program $name"
	done
} >"$work/list"

# timed NUMBER KIND NAME WORDS...: a job; how long it took, and how much CPU time
timed() {
	local number=$1 kind=$2 TIMEFORMAT="$3 %R %U %S"
	shift 2
	{ time "job_$kind" "$@" >"$work/result.$number" 2>&3; } 3>&2 2>"$work/times.$number"
}

number=0
while read -r kind name command; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	number=$((number + 1))
	timed $number "$kind" "$name" $command &
done <"$work/list"
wait
[ $number -gt 0 ] || die "no test of $kinds is called $filter"

passed=0 failed=0 skipped=0
for ((i = 1; i <= number; i++)); do
	while IFS= read -r line; do
		case $line in
		PASS*)	passed=$((passed + 1)) ;;
		SKIP*)	skipped=$((skipped + 1)); echo "$line" ;;
		FAIL*)	failed=$((failed + 1)); echo "$line" ;;
		*)	echo "$line" ;;
		esac
	done <"$work/result.$i"
done
if [ -n "$times" ]; then
	echo 'slowest: seconds, of CPU time, name'
	cat "$work"/times.* | awk '{ printf "%8.1f %8.1f %s\n", $2, $3 + $4, $1 }' |
		sort -rn | head -n 20
fi
if [ $skipped -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
