#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/model.sh - the schedule explorer (tests/model/), with fixed seeds: each scenario passes
# all runs with one deviation, some scenarios all with two (more with FZ_ALL), and each some by PCT and at random, with store
# buffers and with plain accesses as points, too (15 times as many with FZ_ALL); the reduction leaves out no
# outcome of some scenarios (of all with FZ_ALL); what the explorer refuses, it refuses
# by name; and each fault of tests/model/planted/ can be planted in the code as it is.
. "$(dirname "$0")/../../lib/judge.inc"
need setpriv prlimit ps

explore=$build/tests/model/explore
replay=$root/tests/model/replay

runs=${FZ_ALL:+1500} runs=${runs:-100}

explores() {
	local name=$1 log=$work/$1.log
	if "$explore" --exhaustive --bound 1 --pct "$runs" --random "$runs" "$name" >"$log" 2>&1 &&
	   "$explore" --tso --pct $((runs / 4)) --random $((runs / 4)) "$name" >>"$log" 2>&1 &&
	   "$explore" --plain --pct $((runs / 4)) --random $((runs / 4)) "$name" >>"$log" 2>&1 &&
	   # Only the last of the passes that find more shared memory.
	   [ "$(grep -c ', all tried' "$log")" -eq 1 ]; then
		pass "$name"
	else
		fail "$name" "a run fails, or not all have been tried"
		grep -E -A 60 '^FAILED|outside|tried' "$log"
	fi
}

for scenario in $("$explore" --list | awk '{ print $1 }'); do
	explores "$scenario"
done

# The smallest with two deviations: some 36,000 runs, 2 s of CPU time; three times as many with FZ_ALL.
two=(cond_native mutex_native ring_asleep spin_lock_one)
[ -z "${FZ_ALL-}" ] || two+=(futex_native ring_loser sem_native)
all=$("$root/tests/model/explore_all.sh" 2 "${two[@]}" | sed -E 's/ +[0-9]+ runs +[0-9.]+ s +/ runs /')
same "every run with 2 deviations" "$(printf '%s runs all tried\n' "${two[@]}"
	echo "total runs ${#two[@]} of ${#two[@]} scenarios tried wholly")" "$all"

# Of each kind of scenario one that takes little.
compare=$root/tests/model/reduce/compare.sh
compared=(sem cond_signal mutex_timed runq_slot futex_requeue cancel_deferred kick_taken ring_asleep signal_mask
	  barrier_destroy spin_lock)
[ -z "${FZ_ALL-}" ] || compared=()
leaves_out_none() {
	"$compare" "$@" >"$work/out" || { grep -A 1 DIFFERENT "$work/out"; return 1; }
}
yes "the reduction leaves out no outcome, 1 deviation" leaves_out_none 1 "${compared[@]}"
yes "the reduction leaves out no outcome, 2 deviations" leaves_out_none 2 mutex_native

# Not whether it is found: that is `make check-planted`.
scenarios=$("$explore" --list)
planted=
for patch in "$root"/tests/model/planted/*.patch; do
	name=${patch##*/}
	scenario=$(sed -n 's/^Found-by: *\([a-z0-9_]*\).*/\1/p' "$patch")
	patch -d "$root" -p1 -N -F 0 -s --dry-run <"$patch" >"$work/out" 2>&1 ||
		planted+="$name: $(head -n 1 "$work/out"); "
	grep -q "^${scenario:-?} " <<<"$scenarios" || planted+="$name: no scenario '$scenario'; "
done
if [ -z "$planted" ]; then
	pass "each planted fault applies"
else
	fail "each planted fault applies" "$planted"
fi

# shellcheck disable=SC2016 # backquotes
same "PLANTED.md has just the planted faults: else, run planted.sh --write" \
	"$(basename -as .patch "$root"/tests/model/planted/*.patch | xargs)" \
	"$(sed -n 's/^| `\([^`]*\)` .*/\1/p' "$root/tests/model/PLANTED.md" 2>/dev/null | xargs)"
sources=$("$replay" mutex2/pct/1@0 2>&1 | sed -n 's/.*which are \([0-9a-f]*\):.*/\1/p')
if "$replay" "mutex2/pct/1@$sources" >"$work/out" 2>&1 && grep -q '^passed: mutex2' "$work/out"; then
	pass "a seed is replayed"
else
	fail "a seed is replayed" "it does not pass"
	tail -n 5 "$work/out"
fi

# A run has more points with plain accesses than without: PCT's change points must reach those beyond, too.
changes_late() {
	local scenario=yield most i last all
	most=$("$explore" --pct 1 $scenario | sed -n 's/.*, \([0-9]*\) points at most.*/\1/p')
	for i in {1..60}; do
		"$replay" "$scenario+plain/pct/$i@$sources" >"$work/out" 2>&1 || return 1
		last=$(sed -n 's/.*change point //p' "$work/out" | tail -n 1)
		all=$(sed -n 's/^passed: .*, \([0-9]*\) points$/\1/p' "$work/out")
		[ "${last:-0}" -le "${most:?}" ] || [ $((last * 3)) -le $((all * 2)) ] || return 0
	done
	return 1
}
yes "PCT changes priorities late in a run with plain accesses" changes_late
refuses explore "a seed of other sources" "of other sources than these" "$replay" mutex2/pct/1@0123456789
refuses explore "no seed" "not a seed" "$replay" mutex2
refuses replay "a seed for gdb's shell" "not a seed" "$replay" --gdb "mutex2/pct/1\`exit\`@$sources"
refuses explore "a seed of an unknown scenario" "no such scenario" "$replay" "mutex9/pct/1@$sources"
refuses explore "a seed of an unknown kind" "unknown kind" "$replay" "mutex2/luck/1@$sources"
refuses explore "a list out of order" "in the order of the steps" "$replay" "mutex2/listed2/200.1-100.1@$sources"
refuses explore "a list that goes on" "in the order of the steps" "$replay" "mutex2/listed2/100.1-@$sources"
refuses explore "a list of more picks than its bound" "more picks than its BOUND" \
	"$replay" "mutex2/listed0/100.1@$sources"
if command -v gdb >/dev/null; then
	# The first run of the warm-up fails: gdb makes 1, RUN_FAILED, of its outcome.
	# shellcheck disable=SC2016 # gdb's variable
	warm_up_fails() {
		gdb -batch -nx -ex 'break *run_over' -ex "run --replay $1" -ex 'set var $rdi = 1' -ex delete -ex continue \
			"$explore" >"$work/out" 2>&1
	}
	for list in listed1/5 listed0/5.1; do
		warm_up_fails "mutex2/$list@$sources"
		has "$list is refused before any run" "$work/out" 'exited with code 02'
	done
	warm_up_fails "mutex2/listed1/50.1@$sources"
	has "a seed that is not run since the warm-up fails" "$work/out" "^not run: mutex2/listed1/50.1@$sources: "
	has "the status of a warm-up that fails" "$work/out" 'exited with code 01'
else
	skip "a warm-up that fails" "gdb is not installed"
fi
refuses explore "a number with a sign" "no number" "$replay" "mutex2/pct/-5@$sources"
refuses explore "a number too large" "no number" "$replay" "mutex2/pct/99999999999999999999999@$sources"
refuses explore "a count that is no number" "--pct -1: must be a number" "$explore" --pct -1 mutex2
refuses explore "a bound that is no number" "--bound x: must be a number" "$explore" --exhaustive --bound x mutex2
for how in --pct=1 --list ''; do
	# shellcheck disable=SC2086 # a word or none
	refuses explore "an unknown scenario: '$how'" "no scenario mutex9" "$explore" $how mutex2 mutex9
done

seed="mutex2/pct/1@$sources"
refuses explore "a seed with an option" "--replay SEED goes alone" "$explore" --tso --plain --replay "$seed"
refuses explore "a seed, then an option" "--replay SEED goes alone" "$explore" --replay "$seed" --list
refuses explore "words after a seed" "--replay SEED goes alone" "$explore" --replay "$seed" mutex3
refuses usage "replay: words after a seed" "usage: replay" "$replay" "$seed" mutex3
refuses usage "replay --gdb without a seed" "usage: replay" "$replay" --gdb
refuses explore "store buffers twice" "no such scenario" "$replay" "mutex2+tso+tso/pct/1@$sources"

# The one that is preempted, and the one whose deadline it was.
for i in {1..20}; do
	"$replay" "nap/random/$i@$sources" >"$work/out" 2>&1
	! grep -q "deadline has come" "$work/out" || break
done
has "a trace says whose deadline has come" "$work/out" \
	'^   step [0-9]*: [^,;]* \(is preempted\|sleeps\); [^;]* ([0-9]*), whose deadline has come, goes on$'

# What the kernel does, but not by default.
kernel_deviates() {
	local i text left=("the futex wait ends by itself" "is woken to report" "in another order") rest
	for i in {1..1000}; do
		"$replay" "ring/random/$i@$sources" >"$work/out" 2>&1 || return 1
		rest=()
		for text in "${left[@]}"; do
			grep -qF "$text" "$work/out" || rest+=("$text")
		done
		[ ${#rest[@]} -gt 0 ] || return 0
		left=("${rest[@]}")
	done
	echo "never: ${left[*]}"
	return 1
}
yes "the kernel is early, late, out of order" kernel_deviates

# stops NAME STATUS TEXT COMMAND...: it exits so and says just one line, with TEXT; fd 3 is its output.
stops() {
	local name=$1 status=$2 text=$3 got
	shift 3
	"$@" >&3 2>"$work/err"
	got=$?
	if [ $got -eq "$status" ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$text" "$work/err"; then
		pass "$name"
	else
		fail "$name" "exit status $got, and: $(head -c 500 "$work/err")"
	fi
}
for how in "--pct 5 mutex2 mutex3" --list "--replay $seed"; do
	# shellcheck disable=SC2086 # words
	stops "a full disk: ${how%% *}" 4 "explore: its output cannot be written: No space left" \
		"$explore" $how 3>/dev/full
done
closed() { "$@" >&-; }
stops "a closed output" 4 "explore: its output cannot be written: Bad file" \
	closed "$explore" --pct 5 mutex2 mutex3 3>/dev/null
piped() { "$@" | :; return "${PIPESTATUS[0]}"; }
stops "a pipe that nobody reads" 4 "explore: its output cannot be written: Broken pipe" \
	piped "$explore" --exhaustive mutex_native mutex2 3>/dev/null
stops "a list with a pick that is no choice" 2 "no such choices" "$replay" "mutex2/listed2/50.99@$sources" 3>/dev/null
stops "a list with a step that is not reached" 2 "no such choices" \
	"$replay" "mutex2/listed2/999999.1@$sources" 3>/dev/null
# Root has no such limit; another user may not be let into the build's folder.
unprivileged=()
[ "$(id -u)" -ne 0 ] || unprivileged=(setpriv --reuid 65534 --clear-groups)
chmod 711 "$work"
cp "$explore" "$work/explore"
stops "no process is to be had" 3 "explore: fork: Resource temporarily unavailable" \
	"${unprivileged[@]}" prlimit --nproc=1 "$work/explore" --pct 5 mutex2 mutex3 3>/dev/null

# Hours and names that are none.
for hours in abc -1 0 0.0 1.2.3 ''; do
	refuses explore.sh "explore.sh '$hours'" "number of hours: '$hours'" "$root/tests/model/explore.sh" "$hours"
done
refuses explore.sh "explore.sh without hours" "one argument is needed" "$root/tests/model/explore.sh"
coverage=$root/tests/model/coverage.sh
refuses coverage.sh "coverage.sh without a number" "one argument is needed" "$coverage"
for number in x 0 -1 1.5 '' 1234567890; do
	refuses coverage.sh "coverage.sh '$number'" "not a number of runs: '$number'" "$coverage" "$number"
done
refuses coverage.sh "coverage.sh without an explorer" "is missing: run make model-coverage" \
	env FZ_BUILD="$work/none" "$coverage" 1
same "coverage.sh counts the files of signals" "$(cd "$root/runtime" && echo signal/*.c)" \
	"$("$coverage" --files | grep '^signal/.*c$' | xargs)"
refuses planted.sh "planted.sh --write with a name" "--write takes no name" \
	"$root/tests/model/planted.sh" --write join-lost
# Its processes that are there still.
group_lives() {
	ps -eo pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { lives = 1 } END { exit !lives }'
}
group_is_gone() { ! group_lives "$1"; }
# ends_by SIGNAL STATUS COMMAND...: it takes the explorer with it, and explore.sh says where it was.
ends_by() {
	local signal=$1 want=$2 status sum
	shift 2
	# In a group of its own, and with SIGINT not ignored.
	set -m
	launch "$@"
	set +m
	eventually grep -qs ' runs ' "$work/said" || { echo "no runs"; kill -KILL -- -"$pid"; return 1; }
	kill -"$signal" "$pid"
	wait "$pid"
	status=$?
	eventually group_is_gone "$pid" || { echo "its processes run on"; kill -KILL -- -"$pid"; return 1; }
	sum=$(awk '$4 == "runs" { sum += $3 } END { print sum }' "$work/said")
	grep -q '; next seed [0-9]*$' "$work/said" || status+=", no next seed"
	grep -q "^$sum runs in [0-9.]* s of CPU time, [0-9]* schedules per second$" "$work/said" || status+=", no sum"
	[ "$status" = "$want" ] || { echo "exit status $status"; tail -n 3 "$work/said"; return 1; }
}
yes "explore.sh at SIGINT" ends_by INT 130 "$root/tests/model/explore.sh" 1
yes "explore.sh at SIGTERM" ends_by TERM 143 "$root/tests/model/explore.sh" 1
yes "make explore at SIGTERM" ends_by TERM 143 \
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" B="$build" explore HOURS=1

for bound in x -1 100 ''; do
	refuses explore_all.sh "make explore-all BOUND='$bound'" "number of deviations from 0 to 99: '$bound'" \
		"$root/tests/model/explore_all.sh" "$bound"
done
all=$("$root/tests/model/explore_all.sh" 1 barrier mutex2 | sed -E 's/ +[0-9]+ runs +[0-9.]+ s +/ runs /')
same "every run with 1 deviation" \
	"barrier runs all tried${newline}mutex2 runs all tried${newline}total runs 2 of 2 scenarios tried wholly" "$all"
refuses explore_all.sh "explore_all.sh without a bound" "an argument is needed" "$root/tests/model/explore_all.sh"
refuses explore_all.sh "explore_all.sh with an unknown scenario" "no scenario mutex9" \
	"$root/tests/model/explore_all.sh" 1 mutex2 mutex9
refuses compare.sh "compare.sh without a bound" "an argument is needed" "$compare"
refuses compare.sh "compare.sh with another bound" "number of deviations from 0 to 99: 'x'" "$compare" x mutex2
refuses compare.sh "compare.sh with an unknown scenario" "no scenario mutex9" "$compare" 1 mutex9
refuses planted.sh "planted.sh with unknown names" "'nosuch', '../x'" \
	"$root/tests/model/planted.sh" join-lost nosuch ../x
finish
