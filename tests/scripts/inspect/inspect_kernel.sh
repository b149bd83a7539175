#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_kernel.sh - "fiberize ps" of threads that wait in the kernel in futex calls: which of these
# are mutexes and joins, who has the mutex, and which threads are in a deadlock.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq
need gdb
cd "$work" || exit 1
ulimit -c unlimited

# ask FILTER: of what "fiberize ps" has found
ask()
{
	jq -r "$1" <<<"$out"
}

# waiting COUNT [FUTEXES]: do so many threads wait for each other, and so many for a futex of which no more is known, or
# no more yet?  Sets out to what "fiberize ps" says.
waiting()
{
	run "$fiberize" ps --json "$pid"
	[ "$(ask '[.threads[].waits_for | select(IN("mutex", "join", "semaphore", "rwlock to read", "rwlock to write"))] | length')" = "$1" ] &&
		[ "$(ask '[.threads[].waits_for | select(. == "futex")] | length')" = "${2:-0}" ]
}

# tells NAME PATTERN: what does the thread of this name wait for?
tells()
{
	like "$backend: $1" "$2" "$(jq -r --arg name "$1" '.threads[] | select(.name == $name).detail' <<<"$out")"
}

# waits_for NAME PATTERN: does the thread of this name wait for that?  Sets out to what "fiberize ps" says.
waits_for()
{
	run "$fiberize" ps --json "$pid"
	# shellcheck disable=SC2053 # a pattern
	[[ $(jq -r --arg name "$1" '.threads[] | select(.name == $name).detail' <<<"$out") == $2 ]]
}

# in_a_core: ends the process, and looks for the same in its core file
in_a_core()
{
	local core
	stop_by ABRT
	core=$(find . -name 'core*' -print -quit)
	if [ -z "$core" ]; then
		skip "$backend: a core file: a deadlock" 'the kernel writes core files elsewhere'
		return
	fi
	run "$fiberize" ps --core --json "$core"
	rm "$core"
	same "$backend: a core file: a deadlock" 'takes-first takes-second' "$(circles)"
	same "$backend: a core file: all asleep" true "$(ask .all_asleep)"
}

# circles: the names of the threads of each deadlock
circles()
{
	# shellcheck disable=SC2016 # jq's variables
	ask '. as $all | [.deadlocks[] | map(. as $tid | $all.threads[] | select(.tid == $tid).name) | sort | join(" ")] | join(", ")'
}

# looked_at HOW COUNT [FUTEXES]: a program of which so many threads wait
looked_at()
{
	# shellcheck disable=SC2086 # a word or none
	start "$fiberize" --backend "$backend" "$helpers/in_kernel" $1
	must eventually waiting "$2" "${3:-0}"
}

each_kind()
{
	local owner
	looked_at '' 14 3
	tells word 'futex 0x* (word)*'
	tells itself 'futex 0x* (own_tid)*'
	tells has-lock 'semaphore 0x*'
	owner=$(ask '.threads[] | select(.name == "has-lock").tid')
	tells reads "rwlock to read 0x* (rwlock), held by $owner \"has-lock\"*"
	tells writes "rwlock to write 0x* (rwlock), held by $owner \"has-lock\"*"
	tells takes-fiber 'futex 0x* (of_fiber)*'
	owner=$(ask '.threads[] | select(.name == "has-inheriting").tid')
	tells inherits "mutex 0x* (inheriting), held by $owner \"has-inheriting\"*"
	same "$backend: the owner of a priority-inheriting mutex" "$owner" "$(ask '.threads[] | select(.name == "inherits").owner')"
	owner=$(ask '.threads[] | select(.name == "has-robust").tid')
	tells takes-robust "mutex 0x* (first), held by $owner \"has-robust\"*"
	tells takes-in-time "mutex 0x* (first), held by $owner \"has-robust\", with a deadline*"
	owner=$(ask '.threads[] | select(.name == "native").tid')
	tells takes-native "mutex 0x* (of_native), held by $owner \"native\"*"
	tells joins "join, of $owner \"native\"*"
	tells joins-in-time "join, of $owner \"native\", with a deadline*"
	same "$backend: no deadlock" '' "$(circles)"
	stop
}

deadlocks()
{
	looked_at robust 3
	same "$backend: robust mutexes: a deadlock" 'takes-first takes-second' "$(circles)"
	same "$backend: robust mutexes: all asleep" true "$(ask .all_asleep)"
	run "$fiberize" ps "$pid"
	like "$backend: robust mutexes: in words" '*deadlock:*waits for mutex 0x* (second), held by * "takes-second"*' "$out"
	run "$fiberize" ps --tree "$pid"
	like "$backend: robust mutexes: the tree" '*takes-*  mutex 0x*held by*' "$out"
	in_a_core
	looked_at rwlocks 3
	same "$backend: shared locks for writing: a deadlock" 'writes-first writes-second' "$(circles)"
	same "$backend: shared locks for writing: all asleep" true "$(ask .all_asleep)"
	stop
	looked_at again 2
	same "$backend: a robust mutex that it has: a deadlock" takes-twice "$(circles)"
	stop
	looked_at timed 3
	same "$backend: one in time: no deadlock" '' "$(circles)"
	same "$backend: one in time: not all asleep" false "$(ask .all_asleep)"
	stop
	looked_at other 2
	same "$backend: another process has it: not all asleep" false "$(ask .all_asleep)"
	like "$backend: another process has it" '*held by [1-9]*' "$(ask '.threads[] | select(.main).detail')"
	same "$backend: another process has it: nobody has ended" 0 "$(grep -c 'has ended' <<<"$out")"
	stop
}

# stopped_waiting: is the process stopped while three threads wait?  If not, it goes on until the next time.
stopped_waiting()
{
	kill -STOP "$pid"
	waiting 3 && return
	kill -CONT "$pid"
	return 1
}

# over: has the time of each wait come?  Sets out to what "fiberize ps" says.
over()
{
	run "$fiberize" ps --json "$pid"
	[ "$(ask '[.threads[] | select((.deadline_s // -1) >= 0)] | length')" = 0 ]
}

# A stopped process does not end its waits in time.
past()
{
	looked_at past 3
	must eventually stopped_waiting
	same "$backend: stopped: the deadlines are to come" 2 "$(ask '[.threads[] | select(.deadline_s != null)] | length')"
	must eventually over
	same "$backend: the deadlines are over: no deadlock" '' "$(circles)"
	same "$backend: the deadlines are over: not all asleep" false "$(ask .all_asleep)"
	same "$backend: the deadlines are over: they are known" 2 "$(ask '[.threads[] | select((.deadline_s // 0) < 0)] | length')"
	tells tries-first 'mutex 0x* (other_plain), held by * "tries-second", until *.??? s ago*'
	kill -CONT "$pid"
	stop
}

# deadlocked NAMES: are these threads in a deadlock?  Sets out to what "fiberize ps" says.
deadlocked()
{
	run "$fiberize" ps --json "$pid"
	[ "$(circles)" = "$1" ]
}

# One of the threads waits for longer than the mutex has had its owner.
queue()
{
	looked_at queue 2
	kill -USR1 "$pid"
	yes "$backend: a mutex that got another owner: a deadlock" eventually deadlocked 'against in-turn'
	stop
}

# The owner of a mutex gives it to another thread while ps reads: after the thread that waits for it was read, and before
# the owner is.
stale()
{
	local reader
	looked_at stale 3
	kill -USR1 "$pid"
	must eventually waits_for late 'mutex 0x* (first), held by * "gives"*'
	rm -f stopped go
	gdb -nx -batch -ex "break wait_read if f->tid == $(ask '.threads[] | select(.name == "gives").tid')" \
		-ex "run ps --json $pid >found" \
		-ex 'shell touch stopped; while [ -e stopped ] && ! [ -e go ]; do sleep 0.05; done' \
		-ex delete -ex continue "$build/libexec/inspect" >by_gdb 2>&1 &
	reader=$!
	must eventually [ -e stopped ]
	kill -USR1 "$pid"
	must eventually waits_for gives 'mutex 0x* (second), held by * "late"*'
	touch go
	wait "$reader"
	out=$(cat found)
	tells late 'mutex 0x* (first), held by * "gives"*'
	tells gives 'mutex 0x* (second), held by * "late"*'
	same "$backend: the owner has changed while ps reads: no deadlock" '' "$(circles)"
	stop
}

# The kernel names the next owner of a mutex that inherits priorities before that thread has left its call, where a stop
# finds it about every second time.
handed()
{
	local found=
	start "$fiberize" --backend "$backend" "$helpers/in_kernel" handed
	for _ in {1..12}; do
		kill -STOP "$pid"
		run "$fiberize" ps --json "$pid"
		found+=$(circles)
		kill -CONT "$pid"
	done
	same "$backend: a mutex that is handed over: no deadlock" '' "$found"
	stop
}

# The words of the mutexes have the tids of another PID namespace.
elsewhere()
{
	local outer
	start unshare --pid --fork --kill-child "$fiberize" --backend "$backend" "$helpers/in_kernel" robust
	outer=$pid
	pid=$(cat "/proc/$outer/task/$outer/children")
	pid=${pid% }
	must eventually waiting 3
	same "$backend: a namespace: a deadlock" 'takes-first takes-second' "$(circles)"
	pid=$outer
	stop
}

for backend in uring epoll; do
	each_kind
	deadlocks
	past
	queue
	stale
	handed
	if unshare --pid --fork true 2>/dev/null; then
		elsewhere
	else
		skip "$backend: a namespace" 'may not make one'
	fi
done
finish
