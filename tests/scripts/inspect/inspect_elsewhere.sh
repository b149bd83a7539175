#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_elsewhere.sh - how "fiberize ps", "fiberize bt" and gdb show threads that wait for a futex of
# several processes, a child, or something that only the kernel knows; of the process and of its core file.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq gdb
cd "$work" || exit 1
ulimit -c unlimited

# of NAME FILTER: of the thread with this name
of()
{
	jq -r --arg name "$1" ".threads[] | select(.name == \$name) | $2" <<<"$out"
}

# shown BACKEND NAME STATE FD PATTERN
shown()
{
	same "$1: $2: state" "$3" "$(of "$2" .state)"
	like "$1: $2: fd" "$4" "$(of "$2" .fd)"
	like "$1: $2" "$5" "$(of "$2" .detail)"
}

# Does no thread run?
rests()
{
	run "$fiberize" ps "$@" --json "$pid"
	[ "$(jq '[.threads[] | select(.state != "waits" and .in_kernel == null)] | length' <<<"$out")" = 0 ] &&
		[ "$(jq '[.threads[] | select(.name != "" and .name != "elsewhere")] | length' <<<"$out")" = 12 ]
}

# Have the threads slept for long that wait by calls of which the library notes no time?
slept()
{
	run "$fiberize" ps --json "$pid"
	[ "$(jq '[.threads[] | select(.waits_s == null and .waits_at_least_s > 0.3).name] | contains(["locks-file", "watches"])' <<<"$out")" = true ]
}

read -r began _ </proc/uptime
start "$fiberize" --backend uring "$helpers/elsewhere" "$work"
must eventually rests
child=$(cat "/proc/$pid/task"/*/children)
child=${child%% *}
state=waits
[ "$(of any .state)" = waits ] || state='in a call'
shown uring shared "$state" null 'futex 0x* (word)'
shown uring one "$state" null "child $child"
shown uring any "$state" null 'any child'
shown uring group "$state" null "child of process group $child"
shown uring own-group "$state" null 'child of its own process group'
shown uring polls waits '[0-9]*' 'poll(*: anon_inode:*eventpoll*) to read'
shown uring accepts waits '[0-9]*' "accept(*: unix $work/two words)"
shown uring locks waits null 'mutex 0x* (m), held by *'
shown uring writes waits null 'rwlock to write 0x* (rw), held by 1 reader'
shown uring takes-left waits null 'mutex 0x* (left), held by *, which has ended'
same 'short names in C' 'f' "$("$fiberize" bt "$pid" "$(of locks .tid)" | sed -n 's/.* \(f\|float\) at .*elsewhere\.c:.*/\1/p')"
same 'what waits for no descriptor' '' "$("$fiberize" ps --fd "$child" --json "$pid" | jq -r '.threads[].name')"
shown uring locks-file 'in a call' '[0-9]*' "flock(*: $work/locked)"
shown uring watches 'in a call' '[0-9]*' 'read(*: anon_inode:inotify)'
same 'each thread has all members' 'deadline_s,detail,fd,owner,waits_at_least_s,waits_for,waits_s' \
	"$(jq -r '[(.threads, .library_threads)[] | keys_unsorted - ["tid", "name", "main", "state", "kernel_tid", "processor", "cpu_ns",
		"switches", "why", "in_kernel"] | sort | join(",")] | unique[]' <<<"$out")"
same '--wait flock' locks-file "$("$fiberize" ps --wait flock --json "$pid" | jq -r '.threads[].name')"
same '--fd' watches "$("$fiberize" ps --fd "$(of watches .fd)" --json "$pid" | jq -r '.threads[].name')"
# Each stop makes the thread begin its call anew, so what bt says must be of before.
tid=$(of locks-file .tid)
told=0
for _ in {1..20}; do
	run "$fiberize" bt "$pid" "$tid"
	[[ $out != *", on kernel thread "*", waits: flock("*": $work/locked)$newline"* ]] || told=$((told + 1))
done
same 'bt: a call, 20 times' 20 "$told"
run "$fiberize" ps --name locks-file "$pid"
like 'ps: the function of the kernel' "*flock(*: $work/locked), in the kernel: *lock*" "$out"

if grep -qs '^se.exec_start' /proc/self/sched; then
	must eventually slept
	read -r now _ </proc/uptime
	same 'a call: not longer than the process lives' true \
		"$(jq "[.threads[].waits_at_least_s // 0] | max < $now - $began + 0.02" <<<"$out")"
	run "$fiberize" ps --longer 0.3 --name locks-file "$pid"
	like 'a call: for how long at least' '* in a call * >[0-9]*.[0-9][0-9][0-9] * flock(*' "$out"
	same 'no thread of the library waits' '' "$("$fiberize" ps --longer 0 "$pid" | grep ' library ')"
else
	skip 'for how long a call lasts' 'the kernel does not tell when a thread last ran'
fi

run "$fiberize" top --batch --count 1 "$pid" 0.2
if [ "$state" = waits ]; then
	like 'top: kinds of requests' "*request: child$newline*" "$out"
	like 'top: kinds of requests, a futex' "*request: futex$newline*" "$out"
fi

# ---- gdb, of the process and of its core file

by_gdb()
{
	local name=$1
	shift
	run gdb -nx -batch -x "$build/gdb.py" "$@" -ex 'info fibers' -ex 'fiber locks'
	like "$name: a lock that readers hold" '*"writes" waits: rwlock to write 0x* (rw), held by 1 reader*' "$out"
	like "$name: a lock of a thread that has ended" '*"takes-left" waits: mutex 0x* (left), held by *, which has ended*' "$out"
	like "$name: fiber locks" "*mutex 0x* (left), held by *, which has ended: * \"takes-left\"*rwlock to write 0x* (rw), held by 1 reader: * \"writes\"*" "$out"
	# Ids, and so the rows, do not follow the order in which threads were made.
	if [ "$(uname -m)" = x86_64 ]; then
		like "$name: a call" '*"locks-file" in a call on kernel thread *' "$out"
		like "$name: another call" '*"watches" in a call on kernel thread *' "$out"
	fi
	like "$name: accept" '*"accepts" waits: accept([0-9]*)*' "$out"
	[ "$state" = waits ] || return 0
	like "$name: a futex" '*"shared" waits: futex 0x* (word)*' "$out"
	like "$name: a child" "*\"one\" waits: child $child$newline*" "$out"
	like "$name: any child" "*\"any\" waits: any child$newline*" "$out"
	like "$name: a group" "*\"group\" waits: child of process group $child$newline*" "$out"
	like "$name: the own group" "*\"own-group\" waits: child of its own process group$newline*" "$out"
	like "$name: poll" "*\"polls\" waits: poll([0-9]*) to read$newline*" "$out"
}

by_gdb gdb -p "$pid"

# ---- hexadecimal ids of threads

main=$(printf '%#x' "$pid")
for option in '' --tree; do
	# shellcheck disable=SC2086 # words
	run "$fiberize" ps --hex $option "$pid"
	like "--hex $option: the owner" "*mutex 0x* (m), held by $main*" "$out"
done

# ---- its core file

run "$fiberize" ps --json "$pid"
jq -c '.threads[] | [.tid, .name, .state, .waits_for, .fd, .owner]' <<<"$out" >live
kill -ABRT "$pid"
wait "$pid"
core=$(find . -name 'core*' -print -quit)
if [ -n "$core" ]; then
	run "$fiberize" ps --core --json "$core"
	jq -c '.threads[] | [.tid, .name, .state, .waits_for, .fd, .owner]' <<<"$out" >dead
	same 'a core file says the same' '' "$(diff live dead)"
	by_gdb 'gdb, core' "$helpers/elsewhere" "$core"
	rm "$core"
else
	skip 'core file' "the kernel writes none here: $(cat /proc/sys/kernel/core_pattern)"
fi

# ---- without requests

start "$fiberize" --backend epoll "$helpers/elsewhere" "$work"
must eventually rests
child=$(cat "/proc/$pid/task"/*/children)
child=${child%% *}
shown epoll one 'in a call' null "child $child"
shown epoll any 'in a call' null 'any child'
shown epoll locks-file 'in a call' '[0-9]*' "flock(*: $work/locked)"
finish
