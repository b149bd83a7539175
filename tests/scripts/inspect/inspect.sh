#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect.sh - "fiberize ps" and "fiberize bt": every kind of wait by its name, deadlocks,
# backtraces, a stripped library and one that was replaced; processes that cannot be looked at.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq gdb python3 setpriv
chmod 755 "$work"

threads()
{
	run "$fiberize" ps --json "$pid"
}

# waits BACKEND NAME PATTERN
waits()
{
	like "$1: $2" "$3" "$(jq -r --arg name "$2" \
		'.threads[] | select(.name == $name) | .detail // .state' <<<"$out")"
}

kinds()
{
	local backend=$1 held tid
	start "$fiberize" --backend "$backend" "$helpers/waiters"
	must eventually settled
	held=$(jq -r '.threads[] | select(.name == "writes") | .tid' <<<"$out")
	waits "$backend" takes-first 'mutex 0x* (second), held by * "takes-second"'
	waits "$backend" takes-second 'mutex 0x* (first), held by * "takes-first"'
	waits "$backend" reads 'recv(*: unix)'
	waits "$backend" polls 'poll of 2: (*: unix) (*: pipe:*)'
	waits "$backend" sleeps 'sleep, for 99*.* s more'
	waits "$backend" writes-too "rwlock to write 0x* (rwlock), held by $held \"writes\""
	waits "$backend" reads-too "rwlock to read 0x* (rwlock), held by $held \"writes\""
	waits "$backend" takes 'semaphore 0x* (semaphore)'
	waits "$backend" awaits 'condition variable 0x* (cond)'
	waits "$backend" arrives 'barrier 0x*'
	waits "$backend" expects 'signal USR1'
	waits "$backend" computes '[rq]u*'
	waits "$backend" waiters 'join, of * "takes-first"'
	same "$backend: the deadlock" 'takes-first takes-second' "$(jq -r '. as $all | .deadlocks[0] |
		map(. as $tid | $all.threads[] | select(.tid == $tid).name) | sort | join(" ")' <<<"$out")"
	run "$fiberize" ps "$pid"
	like "$backend: ps says deadlock" "14 threads on *deadlock:$newline*waits for mutex*" "$out"
	tid=$(awk '/ awaits /{ print $1 }' <<<"$out")
	run "$fiberize" bt "$pid" "$tid"
	like "$backend: bt" "thread $tid \"awaits\", waits: condition variable *preload/sync/cond.c*awaits at *waiters.c:*" "$out"
	run "$fiberize" bt "$pid"
	same "$backend: bt has each thread" 14 "$(grep -c '^thread\|^[0-9]* threads' <<<"$out")"
	stop
}

kinds uring
kinds epoll

# ---- frames: as gdb has them for the same program natively

frames_of_gdb()
{
	gdb -p "$pid" -batch -ex 'thread apply all bt' 2>/dev/null |
		sed -n 's/^#[0-9]* .* in \([a-z_]*\) (.*waiters\.c.*/\1/p; s/^#[0-9]*  *\([a-z_]*\) (.*waiters\.c.*/\1/p' |
		sort -u
}

start "$helpers/waiters"
frames_of_gdb >"$work/native"
stop
start "$fiberize" "$helpers/waiters"
must eventually settled
run "$fiberize" bt "$pid"
{
	sed -n 's/^  #[0-9]* *0x[0-9a-f]* \([a-z_]*\) at .*waiters\.c.*/\1/p' <<<"$out"
	# It runs on a kernel thread: gdb has its frames.
	echo computes
} | sort -u >"$work/fibers"
same 'the frames that gdb has natively' "$(cat "$work/native")" "$(cat "$work/fibers")"
stop

# ---- threads that go on meanwhile: no stack is made of two

# A stack has its beginning, and not two of what the threads do in turn.
mixed()
{
	awk '
		function judge() { if (head && (!begun || usleep + descends + yields > 1)) print head }
		/^thread |^[0-9]+ threads/ {
			judge()
			head = / has (run meanwhile|ended)$/ ? "" : $0
			begun = usleep = descends = yields = 0
		}
		/ (naps|naps_never|main) at .*naps\.c:/ { begun = 1 }
		/ usleep / { usleep = 1 }
		/ descends at / { descends = 1 }
		/ yields at / { yields = 1 }
		END { judge() }' "$1"
}

start "$fiberize" --processors 1 "$helpers/naps"
for _ in {1..20}; do
	run "$fiberize" bt "$pid"
	printf '%s\n' "$out"
done >"$work/looks"
stop
yes 'threads that nap: their stacks' grep -q ' naps at .*naps\.c:' "$work/looks"
same 'threads that nap: no stack is made of two' '' "$(mixed "$work/looks")"

# ---- the library is stripped, and is replaced while the process runs

cp "$library" "$work/libfiberize.so"
strip --strip-unneeded "$work/libfiberize.so"
start "$fiberize" --library "$work/libfiberize.so" "$helpers/waiters"
rm "$work/libfiberize.so"
yes 'a stripped library that is gone' eventually settled
stop

# An upgrade puts another file in its place.
cp "$library" "$work/libfiberize.so"
start "$fiberize" --library "$work/libfiberize.so" "$helpers/traced"
tid=$("$fiberize" ps "$pid" | awk '$8 == "sleeps" || $2 == "waits" && / sleeps / { print $1; exit }')
other=$(LC_ALL=C ldconfig -p | awk '/libm\.so\.6/ && /x86-64|AArch64/ { print $NF; exit }')
cp "$other" "$work/new"
mv "$work/new" "$work/libfiberize.so"
yes 'an upgrade: the file is another one' grep -q 'libfiberize\.so (deleted)' "/proc/$pid/maps"
run "$fiberize" ps "$pid"
like 'an upgrade: ps' '*threads on *sleeps * sleep*' "$out"
run "$fiberize" bt "$pid" "$tid"
like 'an upgrade: bt' "thread $tid \"sleeps\"* sleeps at *traced.c:*" "$out"
run "$fiberize" stat "$pid"
like 'an upgrade: stat' "traced: process $pid, *switches *requests *" "$out"
run "$fiberize" top --batch --count 1 "$pid" 0.2
like 'an upgrade: top' "traced $pid: * threads on * processor*: *sleep*" "$out"
run "$fiberize" trace --summary --seconds 1 "$pid"
like 'an upgrade: trace' '* usleep *user space * sleeps at traced.c:*' "$out"
run gdb -nx -batch -x "$build/gdb.py" -p "$pid" -ex 'info fibers'
like 'an upgrade: gdb' '*"sleeps" *' "$out"
like 'an upgrade: gdb warns' '*warning: libfiberize.so * in the process has build id *, and gdb has no file of that build:*' "$err"
yes 'an upgrade: the process goes on' kill -0 "$pid"
stop
rm -f /tmp/traced.*
start "$fiberize" "$helpers/waiters"
must eventually settled

# ---- another program traces the process

# to_gdb COMMAND...: while gdb has stopped the process; out and err are of the command
to_gdb()
{
	gdb -nx -batch -p "$pid" -ex "shell $* >'$work/out' 2>'$work/err'; echo \$? >'$work/code'" >/dev/null 2>&1
	out=$(<"$work/out") err=$(<"$work/err") code=$(<"$work/code")
}

computes=$(jq '.threads[] | select(.name == "computes") | .tid' <<<"$out")
awaits=$(jq '.threads[] | select(.name == "awaits") | .tid' <<<"$out")
to_gdb "$fiberize" bt "$pid" "$computes"
same 'traced: bt of a thread that runs: exit status' 106 "$code"
same 'traced: bt of a thread that runs' '' "$out"
like 'traced: bt of a thread that runs: why not' \
	"fiberize: $pid: 1 thread not shown, because another program traces the process: gdb (process *)" "$err"
to_gdb "$fiberize" bt --each "$pid"
same 'traced: bt of all: exit status' 106 "$code"
same 'traced: bt of all: the others' 13 "$(grep -c '^thread .*, waits: ' <<<"$out")"
to_gdb "$fiberize" bt "$pid" "$awaits"
like 'traced: bt of a thread that waits' "0 thread $awaits \"awaits\", waits: *awaits at *waiters.c:*" "$code $out"

# ---- nothing happens to the process

for ((i = 0; i < 50; i++)); do
	"$fiberize" ps "$pid" >/dev/null || break
done
same 'ps fifty times' 50 "$i"
yes 'the process goes on' kill -0 "$pid"

# ---- bad input

refused 'another user' 106 '*not allowed*ptrace*' \
	setpriv --reuid 65534 --clear-groups "$fiberize" ps "$pid"
refused 'no such thread' 2 '*12345: no such thread*' "$fiberize" bt "$pid" 12345
stop
refused 'the process is gone' 105 '*no such process' "$fiberize" ps "$pid"
sleep 1000 &
pid=$!
must eventually has_executed "$pid" sleep
refused 'not fiberized' 107 '*libfiberize.so is not in this process' "$fiberize" ps "$pid"
stop
refused 'no number' 2 '*x1: not a process id*' "$fiberize" ps x1
refused 'no process' 2 '*process id is needed*' "$fiberize" ps
refused 'bt: no process' 2 '*process id is needed*' "$fiberize" bt
refused 'no such option' 2 '*--wide: no such option*' "$fiberize" ps --wide 1
for command in ps bt stat 'top --batch' trace; do
	# shellcheck disable=SC2086 # words
	refused "$command: an option after the process id" 2 'fiberize*: --json: options come first, before 1*' \
		"$fiberize" $command 1 --json
	[ "$command" = trace ] && continue
	# shellcheck disable=SC2086 # words
	refused "$command: after --" 107 '*: libfiberize.so is not in this process' \
		"$fiberize" $command -- $$
done

# ---- a library of another version

# damaged AT BYTES: the library with other bytes at this place of its description
damaged()
{
	python3 - "$library" "$work/other.so" "$1" "$2" <<'PYTHON'
import re, sys
data = bytearray(open(sys.argv[1], "rb").read())
at = re.search(rb"fiberize\x01\0\0\0\x28\0\0\0", data).start() + int(sys.argv[3])
new = sys.argv[4].encode()
data[at:at + len(new)] = new
open(sys.argv[2], "wb").write(data)
PYTHON
	start "$fiberize" --library "$work/other.so" "$helpers/waiters"
}

# each_refuses NAME PATTERN PATTERN-OF-GDB: do all tools refuse it, and is the process unharmed?
each_refuses()
{
	local tool
	for tool in ps bt stat 'trace --seconds 1'; do
		# shellcheck disable=SC2086 # words
		refused "$tool: $1" 108 "$2" "$fiberize" $tool "$pid"
	done
	run gdb -nx -batch -x "$build/gdb.py" -p "$pid" -ex 'info fibers'
	like "gdb: $1" "$3" "$err"
	yes "$1: the process goes on" kill -0 "$pid"
	stop
}

damaged 8 A
each_refuses 'another version' '*describes itself in version 65, this tool reads 1: use the fiberize that came with it' \
	'*version 65*'
# The name of the first entry.
damaged 24 another
each_refuses 'an entry that is missing' '*does not describe "registry": use the fiberize that came with it' \
	'*does not describe "registry"*'
finish
