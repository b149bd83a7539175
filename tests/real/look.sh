#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/look.sh - the commands that look inside, on a server, on a deadlock, on core files, in another PID
# namespace, and on processes that cannot be looked at.

# Dollars in single quotes belong to jq and awk.
# shellcheck disable=SC2016
# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
# shellcheck source=tests/real/look.inc
. "$(dirname "$0")/look.inc"

# ---- legacy_server with 300 connections

looks_legacy_server 300

# ---- two mutexes

cat >embrace.cc <<'CXX'
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <thread>

std::mutex left, right;
pthread_barrier_t both;

void one(std::mutex &first, std::mutex &second, const char *name)
{
	pthread_setname_np(pthread_self(), name);
	std::lock_guard<std::mutex> mine(first);
	pthread_barrier_wait(&both);
	std::lock_guard<std::mutex> yours(second);
}

int main()
{
	pthread_barrier_init(&both, nullptr, 2);
	std::thread a([] { one(left, right, "a"); });
	std::thread b([] { one(right, left, "b"); });
	a.join();
	b.join();
}
CXX
must g++ -g -O0 -pthread -o embrace embrace.cc
line=$(grep -n 'yours(second)' embrace.cc | cut -d: -f1)
begin embrace "${fiberized[@]}" ./embrace
target=$started
embraced() {
	run "$fiberize" ps --json "$target"
	[ "$(ask '.deadlocks | length')" = 1 ]
}
eventually embraced || die 'no deadlock'
same 'deadlock: all asleep' true "$(ask .all_asleep)"
a=$(first_tid '.name == "a"') b=$(first_tid '.name == "b"')
run "$fiberize" ps "$target"
like 'deadlock: ps has the cycle' \
	"*deadlock:$newline*$a waits for mutex 0x* (right), held by $b \"b\"$newline*$b waits for mutex 0x* (left), held by $a \"a\"*all asleep*" "$out"
run "$fiberize" ps --tree "$target"
like 'deadlock: ps --tree' '*mutex 0x* (left), held by*mutex 0x* (right), held by*' "$(sort -t'(' -k2 <<<"$out")"
run "$fiberize" bt "$target" "$a" "$b"
same 'deadlock: bt has both lines' 2 "$(grep -c "  one(.*) at .*embrace\.cc:$line\$\|  one at .*embrace\.cc:$line\$\| one(std::mutex&, .*embrace\.cc:$line\$" "$work/out")"
by_gdb -p "$target" -ex 'fiber locks'
like 'deadlock: fiber locks' "*mutex 0x* (left), held by $a \"a\": $b \"b\"*mutex 0x* (right), held by $b \"b\": $a \"a\"*deadlock: $a \"a\" -> $b \"b\" -> $a \"a\"*" "$out"
looks_core deadlock 3 "embrace\.cc:$line\$" "$a" ./embrace

# ---- it ends, forks, executes meanwhile

begin restless "${fiberized[@]}" "$helpers/restless" 40
target=$started
bad=
looks=0
while kill -0 "$target" 2>/dev/null; do
	by_gdb -p "$target" -ex 'info fibers' -ex 'fiber apply all bt 1' -ex 'fiber locks'
	case $err in
	*Traceback* | *Error:*) bad="$bad $err" ;;
	esac
	looks=$((looks + 1))
done
same 'gdb, forks, executes, ends: no error of the commands' '' "$bad"
yes 'gdb, forks, executes, ends: there were looks' [ $looks -gt 0 ]
wait "$target"
same 'gdb, forks, executes, ends: unharmed' 0 $?

# ---- processes that cannot be looked at

# each_refused NAME CODE PATTERN PID COMMAND...: by each of the tools, behind a command
each_refused() {
	local name=$1 code=$2 pattern=$3 pid=$4 tool
	shift 4
	for tool in ps 'ps --stop' bt stat 'trace --seconds 1'; do
		# shellcheck disable=SC2086 # words
		refused "$tool: $name" "$code" "$pattern" "$@" "$fiberize" $tool "$pid"
	done
}

sleep 1000 &
pids+=($!)
must eventually has_executed $! sleep
each_refused 'not fiberized' 107 '*libfiberize.so is not in this process' $!
begin waiters "${fiberized[@]}" "$helpers/waiters"
target=$started
eventually grep -qs ready "$work/waiters.log" || die 'not ready'
each_refused 'of another user' 106 '*not allowed to look at the process: ptrace(2) forbids it*' "$target" \
	setpriv --reuid 65534 --clear-groups
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	# The number is that of no process there.
	each_refused 'of another PID namespace' 105 '*no such process' "$target" unshare --pid --fork --mount-proc
	begin inside unshare --pid --fork --kill-child --mount-proc "$fiberize" "$helpers/waiters"
	outer=$started
	eventually grep -qs ready "$work/inside.log" || die 'not ready in the namespace'
	target=$(cat "/proc/$outer/task/$outer/children")
	target=${target% }
	looks_ps 'a PID namespace' 14
	looks_bt 'a PID namespace' 14 ' awaits at .*waiters\.c:'
	looks_stat 'a PID namespace' 13
	looks_gdb 'a PID namespace' 14 ' awaits .*waiters\.c:' "$(first_tid '.name == "awaits"')" -p "$target"
	kill -KILL "$outer"
	wait "$outer" 2>/dev/null
else
	skip 'another PID namespace' 'unshare --pid is not permitted here'
fi
# A number above all that the kernel gives.
each_refused 'gone' 105 '*no such process' "$(($(cat /proc/sys/kernel/pid_max) + 1))"
finish
