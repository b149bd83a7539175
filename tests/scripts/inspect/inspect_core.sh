#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_core.sh - "fiberize ps" and "fiberize bt" of core files; the commands of gdb for
# fibers, on a process and on a core file, with the stripped library; running, native and wired threads;
# equal stacks; files that are no core files of ours.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq gdb
script=$build/gdb.py
cd "$work" || exit 1
# The library is stripped, and gdb finds no debug information of it.
cp "$library" libfiberize.so
strip --strip-unneeded libfiberize.so
ulimit -c unlimited

by_gdb()
{
	run gdb -nx -batch -x "$script" "$@"
}

# What does not change from one look at a process to the next.
constant()
{
	jq '.threads | map({ tid, name, state, waits_for, owner })' <<<"$out"
}

# gdb_commands NAME GDB-ARGUMENTS...: each command, with the process or its core file
gdb_commands()
{
	local name=$1 deadline='for 9*.* s more'
	[ "$1" = gdb ] || deadline='with a deadline'
	shift
	by_gdb "$@" -ex 'info fibers'
	like "$name: info fibers" "*$pid \"*waits: join, of * \"takes-first\"*$newline*\"takes-first\" waits: mutex 0x*(second), held by * \"takes-second\"*\"reads\" waits: recv([0-9]*)*\"polls\" waits: poll of 2: ([0-9]*) ([0-9]*)*\"sleeps\" waits: sleep, $deadline*\"writes-too\" waits: rwlock to write 0x* (rwlock), held by * \"writes\"*\"expects\" waits: signal USR1*\"computes\" runs on kernel thread *" "$out"
	same "$name: info fibers has each" 14 "$(grep -c '" waits: \|" runs on' <<<"$out")"
	by_gdb "$@" -ex 'fiber locks'
	like "$name: fiber locks" '*mutex 0x* (first), held by *takes-first*: *takes-second*deadlock: *"takes-first" -> * -> *' "$out"
	by_gdb "$@" -ex "fiber $tid" -ex bt -ex 'info fibers '"$tid" -ex 'fiber off' -ex fiber
	like "$name: fiber N" "*Switching to fiber $tid \"awaits\"]$newline*awaits (arg=*waiters.c:*#1 *#*awaits (arg=*start_thread*\* $tid \"awaits\"*[a kernel thread]*" "$out"
	by_gdb "$@" -ex 'fiber apply all bt'
	same "$name: fiber apply all bt" 14 \
		"$(sed -n '/^Fiber/,$ p' <<<"$out" | grep -c '^#.* at .*waiters\.c:')"
	like "$name: a thread that runs" '*"computes", runs on kernel thread*#0 *computes (arg=*waiters.c:*' "$out"
	by_gdb "$@" -ex 'fiber 12345'
	like "$name: no such fiber" '*12345: no such fiber*' "$err"
}

# ---- a process, and the core file that it leaves

start "$fiberize" --library "$work/libfiberize.so" "$helpers/waiters"
must eventually settled
constant >threads.live
tid=$(jq '.threads[] | select(.name == "awaits") | .tid' <<<"$out")
computes=$(jq '.threads[] | select(.name == "computes") | .tid' <<<"$out")
run "$fiberize" bt --each "$pid"
sed -E 's/, (for [0-9.]+ s more|on kernel thread .*)//; s/: (unix|pipe[^)]*)//g; s| in /.*/| in |; s/0x[0-9a-f]+ (computes at)/\1/' <<<"$out" >bt.live
run "$fiberize" bt "$pid" "$computes"
like 'a thread that runs' "thread $computes \"computes\", on kernel thread *#0 *computes at *waiters.c:*start_thread *" "$out"
run "$fiberize" bt "$pid" "$tid"
like 'the stripped library' "thread $tid \"awaits\"*awaits at *waiters.c:*" "$out"
gdb_commands gdb -p "$pid"
same 'gdb: it has the file of the library' '' "$(grep 'build id' "$work/err")"
yes 'the process goes on' settled
kill -ABRT "$pid"
wait "$pid"
core=$(find . -name 'core*' -print -quit)
if [ -n "$core" ]; then
	run "$fiberize" ps --core --json "$core"
	constant >threads.core
	same 'ps --core' '' "$(diff threads.live threads.core)"
	like 'ps --core: since when is unknown' '*"waits_s":null*' "$(tr -d ' ' <<<"$out")"
	run "$fiberize" bt --core --each "$core"
	sed -E 's/, (with a deadline|on kernel thread .*)//; s| in /.*/| in |; s/0x[0-9a-f]+ (computes at)/\1/' <<<"$out" >bt.core
	same 'bt --core' '' "$(diff bt.live bt.core)"
	run "$fiberize" bt --core "$core" "$tid"
	like 'bt --core TID' "thread $tid \"awaits\"*awaits at *waiters.c:*" "$out"
	refused 'bt --core: no such thread' 2 "*99: no such thread in core file $core; fiberize ps --core $core lists them" \
		"$fiberize" bt --core "$core" 99
	gdb_commands 'gdb, core' "$helpers/waiters" "$core"
	size=$(stat -c %s "$core")
	for length in 100000 $((size / 2)) $((size - 4096)); do
		head -c "$length" "$core" >short
		for command in ps bt; do
			refused "$command, a core file of $length bytes" 109 \
				"*short: the core file is truncated, at $length bytes*" "$fiberize" $command --core short
		done
		# gdb shows what is there, and its own message is on standard output, too.
		by_gdb "$helpers/waiters" short -ex 'info fibers' -ex 'fiber apply all bt 3'
		same "gdb, a core file of $length bytes: no error of the commands" '' "$(grep -e Traceback -e 'Python Exception' -e dormant "$work/out" "$work/err")"
		yes "gdb, a core file of $length bytes: threads, or why not" grep -q -e ' "awaits" waits: ' \
			-e 'The core file is truncated: the memory of libfiberize.so is not in it' "$work/out" "$work/err"
	done
	rm "$core"
else
	skip 'core files' "the kernel writes none here: $(cat /proc/sys/kernel/core_pattern)"
fi

# ---- a deadline that passes while gdb has stopped the process; the file of the library is another one than the core file's

passes()
{
	by_gdb -p "$pid" -ex 'python time.sleep(0.5)' -ex 'info fibers'
	grep -q '" waits: sleep, until 0\.[0-9]* s ago$' <<<"$out"
}

start "$fiberize" "$helpers/traced"
yes 'gdb: a deadline that is over' eventually passes
same 'gdb: no time is negative' '' "$(grep -e ' for -' <<<"$out")"
stop
rm -f /tmp/traced.*

tangled()
{
	run "$fiberize" ps --json "$pid"
	[ "$(jq '.deadlocks | length' <<<"$out")" = 1 ]
}

start "$fiberize" --library "$work/libfiberize.so" "$helpers/tangle"
must eventually tangled
kill -ABRT "$pid"
wait "$pid"
core=$(find . -name 'core*' -print -quit)
if [ -n "$core" ]; then
	reasons='.threads[] | select(.name == "wired") | .why // empty'
	same 'a core file: what the mapped file has' prctl "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	# The same file, with a section more that no process maps, as before strip(1).
	must objcopy --add-section .more=said libfiberize.so new
	mv new libfiberize.so
	same 'a core file: what the same file with more sections has' prctl "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	cp libfiberize.so whole
	# The debug information alone has the build id, and so has the beginning.
	must objcopy --only-keep-debug whole libfiberize.so
	same 'a core file: nothing is of the debug information' '' "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	run "$fiberize" bt --core "$core"
	like 'a core file: bt with the debug information alone' "0 fiberize: $work/libfiberize.so: its file is gone*" "$code $err"
	head -c 8192 whole >libfiberize.so
	same 'a core file: nothing is of a truncated file' '' "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	run "$fiberize" bt --core "$core"
	like 'a core file: bt with a truncated file' "0 fiberize: $work/libfiberize.so: its file is gone*" "$code $err"
	mv whole libfiberize.so
	# A file of as many bytes, of which all words are others.
	tr '[:lower:]' '[:upper:]' <libfiberize.so >new
	mv new libfiberize.so
	same 'a core file: nothing is of another file' '' "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	# An upgrade: another build.
	cp "$helpers/changes.so" new
	mv new libfiberize.so
	run "$fiberize" bt --core "$core"
	like 'a core file: bt with another file' '0 *wired_thread at *tangle.c:*' "$code $out"
	same 'a core file: bt says it, once' "fiberize: $work/libfiberize.so: its file is gone, or another one by now, or cannot be opened: functions of it have no names, and stacks may end there" \
		"$err"
	rm libfiberize.so
	must mkfifo libfiberize.so
	run "$fiberize" bt --core "$core"
	like 'a core file: bt with a FIFO' '0 *wired_thread at *tangle.c:*' "$code $out"
	same 'a core file: nothing is of a FIFO' '' "$("$fiberize" ps --core --json "$core" | jq -r "$reasons")"
	rm "$core"
fi

# ---- a process that has mapped the file of a library once more

is_parked()
{
	run "$fiberize" ps --json "$pid"
	[ "$(jq -r '.threads[] | select(.name == "waits").waits_for' <<<"$out")" = sleep ]
}

# in_twice FRAME LIBRARY [OFFSET]: bt has the frame, of the process and of its core file
in_twice()
{
	local frame="0 *\"waits\"*sleep*$1*start_thread *" name="the library is mapped twice: ${*:2}"
	start "$fiberize" "$helpers/mapped_twice" "${@:2}"
	must eventually is_parked
	run "$fiberize" bt "$pid"
	like "$name" "$frame" "$code $out"
	stop_by ABRT
	core=$(find . -name 'core*' -print -quit)
	[ -n "$core" ] || return
	run "$fiberize" bt --core "$core"
	like "a core file: $name" "$frame" "$code $out"
	same "a core file: $name: nothing is missing" '' "$err"
	rm "$core"
}

must strip -o waits_in.so "$helpers/waits_in.so"
in_twice 'waits_in at *waits_in.c:*' "$helpers/waits_in.so"
in_twice 'waits_in at *waits_in.c:*' "$helpers/waits_in.so" 0x3000
# The file is shorter than the object is in memory.
in_twice 'waits_in in *waits_in.so*' "$work/waits_in.so"
in_twice 'waits_in in *waits_in.so*' "$work/waits_in.so" 0x3000

# ---- native and wired threads; equal stacks

start "$fiberize" "$helpers/tangle"
must eventually tangled
tid=$(jq '.threads[] | select(.name == "pinned") | .tid' <<<"$out")
run "$fiberize" bt "$pid" "$tid"
like 'a native thread' "thread $tid \"pinned\", native, waits: rwlock to write *pinned_thread at *tangle.c:*" "$out"
run "$fiberize" bt "$pid"
like 'a wired thread' '*"wired", on kernel thread *tangle.c:*' "$out"
same 'nothing of the library' '' "$(grep -e carrier -e fz_monitor_run <<<"$out")"
same 'no thread stays stopped' '' "$(grep -h '^State:.*[tT] ' /proc/"$pid"/task/*/status)"
stop

"$fiberize" sleep 1000 &
pid=$!
has_library()
{
	grep -q libfiberize.so "/proc/$pid/maps"
}
must eventually has_library
by_gdb -p "$pid" -ex 'info fibers' -ex 'fiber locks'
like 'gdb, no thread yet' '*No thread was made yet, so the library is dormant;*' "$out"
same 'gdb, no thread yet: no error' '' "$(grep -i dormant <<<"$err")"
stop

start "$fiberize" "$helpers/crowd" 50
run "$fiberize" bt "$pid"
like 'equal stacks' '*50 threads, one of them is thread *crowd.c:*' "$out"
stop

# All scripts of gdb have one set of names: another one takes those that one would choose.
echo 'read = Frame = Filter = Unwinder = Library = library = Fiber = symbol = select = chosen = shown = None' >clash.py
start "$fiberize" "$helpers/crowd" 3
by_gdb -x clash.py -p "$pid" -ex 'info fibers' -ex 'fiber apply all bt'
same 'gdb, another script: each thread' 4 "$(grep -c '^Fiber [0-9]' <<<"$out")"
same 'gdb, another script: no error' '' "$(grep -e Traceback -e Error -e Exception <<<"$err")"
stop

# ---- what is no core file of ours

bash -c 'kill -SEGV $$' 2>/dev/null
core=$(find . -name 'core*' -print -quit)
if [ -n "$core" ]; then
	refused 'not fiberized' 107 '*libfiberize.so is not in this core file' "$fiberize" bt --core "$core"
	by_gdb /bin/bash "$core" -ex 'info fibers'
	like 'gdb, not fiberized' '*libfiberize.so is not in this process*' "$err"
fi
refused 'no core file' 109 '*: not a core file' "$fiberize" ps --core /bin/sh
refused 'not an ELF file' 109 '*: not a core file' "$fiberize" bt --core "$root/tests/run.sh"
refused 'no file' 109 '*/nothing: No such file or directory' "$fiberize" ps --core /nothing
refused 'a directory' 109 '*/tmp: *' "$fiberize" ps --core /tmp
must mkfifo "$work/fifo"
refused 'a FIFO' 109 '*/fifo: not a core file' "$fiberize" ps --core "$work/fifo"
refused 'no name' 2 '*process id is needed*' "$fiberize" ps --core
run gdb -nx -batch -x "$script" -ex 'info fibers'
like 'gdb, no process' '*There is no process*' "$err"
finish
