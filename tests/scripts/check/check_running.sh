#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/check_running.sh - "fiberize check --running": a server with many threads that wait, one that
# runs under fiberize, threads that compute, event loops, threads that come and go, programs that cannot be
# preloaded into, processes of other users, those whose first thread has left; command lines.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/processes.inc
. "$(dirname "$0")/../../lib/processes.inc"
need setpriv

# switches PID KIND: how often all threads have left a processor
switches()
{
	cat /proc/"$1"/task/*/status | awk -v kind="$2" '$1 == kind "_ctxt_switches:" { n += $2 } END { print n }'
}

# load_of FILE OPTION...: a load for the server that has said there where it listens
load_of()
{
	local port
	port=$(sed -n 's/^listening on //p' "$1")
	"$build/libexec/echo_client" -d 600 -t 600 "${@:2}" "$port" >/dev/null 2>&1 &
	load=$!
	pids+=("$load")
	disown $!
}

# holds NAME FILTER [OPTION...]: jq says true of the report in json
holds()
{
	same "$1" true "$(jq "${@:3}" "$2" <<<"$json")"
}

# ---- processes of each kind, at once

begin "$helpers/busy" idle
idle=$pid
cp "$helpers/busy" "$work/it's busy"
begin "$work/it's busy" idle "two words"
odd=$pid
begin "$helpers/leaves"
leaves=$pid
begin "$fiberize" "$helpers/leaves" raw
left=$pid
sleep 600 &
single=$!
pids+=("$single")
disown $single

cat >"$work/bare.c" <<'PROGRAM'
#include <linux/sched.h>
#include <sys/syscall.h>

static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

__attribute__((noreturn)) static void rest(void)
{
	for (;;)
		call(SYS_pause, 0, 0, 0);
}

__attribute__((noreturn, used)) void _start(void)
{
	static char stack[4096] __attribute__((aligned(16)));
	const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

	if (call(SYS_clone, flags, (long)(stack + sizeof(stack) - 128), 0) == 0)
		rest();
	call(SYS_write, 1, (long)"ready\n", 6);
	rest();
}
PROGRAM
bare=
if [ "$(uname -m)" = x86_64 ]; then
	must "$CC" -O2 -nostdlib -static -fno-stack-protector -o "$work/bare" "$work/bare.c"
	begin "$work/bare"
	bare=$pid
fi
musl=
if command -v musl-gcc >/dev/null; then
	must musl-gcc -O2 -pthread -o "$work/musl" "$root/tests/targets/busy.c"
	begin "$work/musl" idle
	musl=$pid
fi

# Those that use the processors last, and no longer than for one report.
begin "$fiberize" "$programs/legacy_server" -e -p 0
fibers=$pid
load_of "$work/said" -c 1 --hold
begin "$programs/legacy_server" -e -p 0
server=$pid
load_of "$work/said" -c 20 -r 1000
served()
{
	local threads=("/proc/$server/task"/*) others=("/proc/$fibers/task"/*)
	[ ${#threads[@]} -eq 21 ] && [ ${#others[@]} -gt 1 ]
}
must eventually served
busy=()
for what in computes loops births; do
	begin "$helpers/busy" $what
	busy+=("$pid")
done
computes=${busy[0]} loops=${busy[1]} births=${busy[2]}

before=$(switches "$server" voluntary)
run "$fiberize" check --running --json 1
after=$(switches "$server" voluntary)
kill -KILL "${busy[@]}"
# The load takes a processor: it rests while no report is made.
kill -STOP "$load"
json=$out
same 'exit status' 0 "$code"
same 'no complaint' '' "$err"
holds 'JSON' '.seconds == 1 and .wait_ns >= 0 and .single >= 1 and .forbidden >= 0'

same 'server: verdict' 'will gain' "$(of "$server" .verdict)"
same 'server: threads' 21 "$(of "$server" .threads)"
same 'server: command' "fiberize $programs/legacy_server -e -p 0" "$(of "$server" .advice)"
# shellcheck disable=SC2016 # jq's variables
{
	holds 'server: waits, and no more than the kernel counted meanwhile' \
		'.processes[] | select(.pid == $pid) | .waits * .seconds | . > 0 and . < $most + 1' \
		--argjson pid "$server" --argjson most $((after - before))
	# What the model says, from the figures of the same report.
	holds 'server: the bound' '.wait_ns as $wait | .processes[] | select(.pid == $pid) |
		.at_most >= 0.05 and .at_most <= 1 and
		if .bound == "waits" then (.at_most - 2 * .waits * $wait / 1e9 / .cpu) | fabs < 0.01
		else .at_most >= .system end' --argjson pid "$server"
}

same 'under fiberize' "runs under fiberize see fiberize stat $fibers null" \
	"$(of "$fibers" '"\(.verdict) \(.reason) \(.advice)"')"
same 'computes: verdict' 'will not gain' "$(of "$computes" .verdict)"
same 'computes: reason' '1 of its threads are CPU-bound' "$(of "$computes" .reason)"
same 'loops' 'will not gain 2' "$(of "$loops" '"\(.verdict) \(.threads_in_loops)"')"
like 'loops: reason' 'event loop: 2 of *' "$(of "$loops" .reason)"
same 'births: threads come and go, only the bound by the kernel holds' 'true system' \
	"$(of "$births" '"\(.short_threads) \(.bound)"')"
same 'idle' 'will not gain 5 0' "$(of "$idle" '"\(.verdict) \(.threads) \(.threads_cpu_bound)"')"
like 'idle: reason' 'idle: it used 0.? % of a processor' "$(of "$idle" .reason)"
same 'its first thread has left' "true $helpers/leaves" \
	"$(of "$leaves" '"\(.program | endswith("/leaves")) \(.command)"')"
same 'its first thread has left: under fiberize' 'runs under fiberize' "$(of "$left" .verdict)"
same 'one thread: not listed' '' "$(of "$single" .verdict)"
same 'a command that needs quotes' "'$work/it'\\''s busy' idle 'two words'" "$(of "$odd" .command)"
if [ -n "$bare" ]; then
	same 'no libc' cannot "$(of "$bare" .verdict)"
	like 'no libc: reason' '*statically linked*' "$(of "$bare" .reason)"
else
	skip 'no libc' 'its program is for x86-64'
fi
if [ -n "$musl" ]; then
	like 'musl' 'cannot *uses musl*' "$(of "$musl" '"\(.verdict) \(.reason)"')"
else
	skip 'musl' 'musl-gcc is not installed'
fi

# ---- text

kill -CONT "$load"
run "$fiberize" check --running 0.5
kill -STOP "$load"
like 'text: the server' "* $server legacy_server *gain: *$newline         fiberize $programs/legacy_server -e -p 0$newline*" "$out"
like 'text: the backend' "*${newline}backend     "[a-z]*"$newline     PID *" "$out"
backend_of()
{
	"$@" check --running --json 0.1 | jq -r '.backend + " " + (.io_uring | tojson)'
}
same 'the backend that is asked for' 'epoll null' "$(backend_of "$fiberize" --backend epoll)"
same 'the backend where io_uring is forbidden' 'epoll "io_uring_setup: EPERM"' \
	"$(backend_of "$helpers/forbid_io_uring" "$fiberize")"
like 'text: the end' "*$newline"[1-9]*' more with one thread: nothing to gain*' "$out"
same 'text: each process once' 1 "$(grep -c "^ *$server " <<<"$out")"

# ---- a file that is gone, other users

rm "$work/it's busy"
run "$fiberize" check --running --json 0.1
json=$out
same 'deleted program: its link' "/proc/$odd/exe" "$(of "$odd" .program)"
if [ "$(id -u)" = 0 ]; then
	cp "$fiberize" "$library" "$work"
	chmod 755 "$work" "$work/fiberize" "$work/libfiberize.so"
	run setpriv --reuid 65534 --regid 65534 --clear-groups -- env "$work/fiberize" check --running --json 0.1
	json=$out
	same 'as nobody: exit status' 0 "$code"
	same 'as nobody: not listed' '' "$(of "$server" .verdict)"
	holds 'as nobody: counted' '.forbidden >= 4'
else
	skip 'as nobody' 'needs root'
fi

# ---- command lines

for wrong in 0 -1 x 1e9 nan; do
	refused "SECONDS $wrong" 2 '*' "$fiberize" check --running "$wrong"
done
refused 'two numbers' 2 '*one number*' "$fiberize" check --running 1 2
refused 'dry-run' 2 '*dry-run*' "$fiberize" --dry-run check --running
run "$fiberize" check --help
like 'help' '*--running*SECONDS*' "$out"

finish
