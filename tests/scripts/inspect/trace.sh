#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/trace.sh - "fiberize trace": calls, rungs and places, the file for Perfetto, and that
# tracing ends; the probes with their arguments in gdb and bpftrace; the names of kernel threads; what
# --verbose says.

# Dollars in single quotes belong to awk, sed and gdb.
# shellcheck disable=SC2016
# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need gdb readelf python3

# ---- calls, and from where

# shows CALL RUNG PLACE: does the table have the line?
shows()
{
	awk -v call="$1" -v rung="$2" -v place="$3" '
		$2 == call && index($0, " " rung " ") && index($0, place) && $1 > 0 { found = 1 }
		END { exit !found }' "$work/table"
}

# A second may be too short for all of it.
traced_second()
{
	"$fiberize" trace --summary --seconds 1 "$pid" >"$work/table" 2>"$work/count" &&
		shows mutex 'user space' 'locks at traced.c:' && shows read "$1" 'reads at traced.c:' &&
		shows pthread_join 'user space' 'makes at traced.c:' &&
		shows flock announced 'locks_file at traced.c:' && shows - 'seen late' '' &&
		shows usleep 'user space' 'sleeps at traced.c:'
}

calls()
{
	local backend=$1 rung=$2
	start "$fiberize" --processors 2 --backend "$backend" "$helpers/traced"
	yes "$backend: each call by its rung, and from where" eventually traced_second "$rung"
	like "$backend: the number of calls" 'fiberize: * calls blocked in *, * events lost' "$(cat "$work/count")"
	# A sleep of 5 ms takes 5 ms at least, whatever the machine does.
	yes "$backend: the time of a sleep" awk '/sleeps at traced.c/ && $2 == "usleep" { found = $6 >= 5 }
		END { exit !found }' "$work/table"
	stop
}

calls uring request
calls epoll readiness

start "$fiberize" --processors 2 "$helpers/traced"
# On a busy machine a second may be too short for the end of a read.
traced_read()
{
	"$fiberize" trace --seconds 1 "$pid" >"$work/lines" 2>/dev/null &&
		grep -Eq '^ +[0-9.]+ +[0-9]+ reads +read\([0-9]+\) +request +[0-9.]+ +[0-9.]+  reads at traced.c:' \
			"$work/lines"
}
yes 'a line for a call' eventually traced_read
same 'in the order of their ends' '' "$(awk 'NR > 1 { split($0, w); end = w[1] }
	NR > 2 && w[1] + 60 < last { print "not sorted" } { last = w[1] }' "$work/lines")"

# ---- the file for Perfetto

must "$fiberize" trace --json "$work/trace.json" --seconds 1 "$pid" 2>/dev/null
cat >"$work/judge.py" <<'PYTHON'
import collections, json, sys

trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
assert int(trace["otherData"]["lost"]) >= 0
tracks = collections.defaultdict(list)
names = {}
for e in events:
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and isinstance(e["name"], str), e
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name"), e
        names[e["pid"], e["tid"]] = e["args"]["name"]
        continue
    assert e["ph"] == "X", e
    assert e["ts"] >= 0 and e["dur"] >= 0, e
    tracks[e["pid"], e["tid"]].append(e)
own = int(sys.argv[2])
assert {n.rsplit(" ", 1)[0] for (p, _), n in names.items() if p == own} >= {"sleeps", "reads", "computes"}
for (pid, tid), slices in tracks.items():
    assert (pid, tid) in names, (pid, tid)
    # What a thread or a processor does comes one after the other, to the ns: Perfetto drops slices that overlap.
    ends = sorted((round(e["ts"] * 1000), round(e["ts"] * 1000) + round(e["dur"] * 1000)) for e in slices)
    for a, b in zip(ends, ends[1:]):
        assert a[1] <= b[0], (pid, tid, a, b)
kinds = {e["name"] for t in tracks.values() for e in t}
assert {"runs", "usleep", "read"} <= kinds, kinds
waits = [e for t in tracks.values() for e in t if e["name"] == "read" and "rung" in e["args"]]
assert waits and all("fd" in e["args"] and "traced.c" in e["args"]["from"] for e in waits), waits[:3]
assert any(p != own for p, _ in tracks), "no processors"
print("good")
PYTHON
same 'the file for Perfetto' good "$(python3 "$work/judge.py" "$work/trace.json" "$pid" 2>&1)"

# ---- it ends, with the tool or without it

# The word that permits events: 0 when nobody traces.
permission()
{
	gdb -p "$pid" -batch -ex 'print fz_trace.until' 2>/dev/null | sed -n 's/^\$1 = //p'
}

is_off()
{
	[ "$(permission)" = 0 ]
}

is_on()
{
	[ "$(permission)" != 0 ]
}

same 'off when the tool has ended' 0 "$(permission)"
"$fiberize" trace "$pid" >/dev/null 2>&1 &
tool=$!
must eventually is_on
kill -KILL $tool
wait $tool 2>/dev/null
yes 'off when the tool was killed' eventually is_off
times=${FZ_ALL:+20} times=${times:-5}
for ((i = 0; i < times; i++)); do
	"$fiberize" trace --summary --seconds 0.05 "$pid" >/dev/null 2>&1 || break
done
same 'again and again' "$times" "$i"

# ---- kernel threads

names=$(cat "/proc/$pid/task/"*/comm 2>/dev/null | sort -u | tr '\n' ' ')
like 'names of kernel threads' 'fz-monitor fz-spawner fz/[0-9]* traced ' "$names"
same 'the process keeps its name' traced "$(cat "/proc/$pid/comm")"

# ---- it is killed, and takes its last events along

rm -f "$work/lines"
"$fiberize" trace "$pid" >"$work/lines" 2>"$work/count" &
tool=$!
must eventually grep -qs usleep "$work/lines"
kill -KILL "$pid"
wait $tool
like 'killed: what was not read' 'fiberize: * 0 events lost, and those of 0.* s until a program ended or executed another one' \
	"$(cat "$work/count")"
stop

# ---- with a program of its own

run "$fiberize" trace --summary -- --processors 2 "$helpers/traced" 1
same 'a program: its exit status' 0 "$code"
same 'a program: its output' ready "$out"
like 'a program: its calls' '*usleep *user space *sleeps at traced.c:*' "$err"

# ---- names, and interrupts

cat >"$work/renamed.c" <<'PROGRAM'
#include <pthread.h>
#include <unistd.h>

static void *naps(void *arg)
{
	for (;;)
		usleep(1000);
	return arg;
}

int main(void)
{
	pthread_t t;
	char c;

	pthread_create(&t, NULL, naps, NULL);
	pthread_setname_np(t, "early");
	while (read(0, &c, 1) == 1)
		pthread_setname_np(t, "late");
	return 5;
}
PROGRAM
must "$CC" -O1 -Wall -pthread -o "$work/renamed" "$work/renamed.c"
rm -f "$work/gate" "$work/lines"
mkfifo "$work/gate"
"$fiberize" trace -- "$work/renamed" <"$work/gate" 2>"$work/lines" &
tool=$!
exec 9>"$work/gate"
must eventually grep -qs usleep "$work/lines"
yes 'a program: the name of a thread' eventually grep -q ' early *usleep' "$work/lines"
echo >&9
yes 'a program: the new name of a thread' eventually grep -q ' late *usleep' "$work/lines"
child=$(cat "/proc/$tool/task/$tool/children")
kill -INT $tool
must eventually grep -q 'calls blocked in' "$work/lines"
# It waits for the program now, without a handler.
default_action()
{
	[ $((0x$(sed -n 's/^SigCgt:\t//p' "/proc/$tool/status") & 2)) = 0 ]
}
yes 'an interrupt: the program goes on, and the tool waits' eventually default_action
kill -INT $tool
wait $tool
same 'a second interrupt ends the tool' 130 $?
yes 'a second interrupt: the program goes on' kill -0 "${child% }"
kill -KILL "${child% }"
exec 9>&-

exec 8<>"$work/gate"
rm -f "$work/lines"
"$fiberize" trace --seconds 0.1 -- "$work/renamed" <"$work/gate" 2>"$work/lines" &
tool=$!
must eventually grep -qs 'calls blocked in' "$work/lines"
child=$(cat "/proc/$tool/task/$tool/children")
kill -KILL "${child% }"
wait $tool
same 'after its seconds it waits for the program' 137 $?
exec 8<&-

# What a process is changes while the tool looks at it for the first time.
bad=
for ((i = 0; i < times + 4; i++)); do
	run "$fiberize" trace --summary -- --processors 2 "$helpers/restless" $((i % 3))
	[ "$code:$(grep '^fiberize: ' <<<"$err" | grep -v ' calls blocked ')" = 0: ] || bad="$bad $code: $err"
	run "$fiberize" trace --summary -- true
	[ "$code:$(grep '^fiberize: ' <<<"$err" | grep -v ' calls blocked ')" = 0: ] || bad="$bad $code: $err"
done
same 'programs that end or execute at their start' '' "$bad"
run "$fiberize" trace --summary -- sh -c "ls / >/dev/null; exec '$helpers/traced' 1"
like 'a program that executes another one: its calls' '*usleep *user space *sleeps at traced.c:*' "$err"
same 'a program that executes another one: its output' ready "$out"
refused 'a program that is not there' 127 '*no-such-program*' "$fiberize" trace -- "$work/no-such-program"

# ---- a program that ends while the tool does not run

# The tool has written the head of its table: it traces.
traces()
{
	grep -qs '^ *SECONDS ' "$work/lines"
}

# waits_at_end: is the program at its end, by ptrace, or a zombie?
waits_at_end()
{
	grep -qs '^State:.[tZ] ' "/proc/$1/status"
}

# outlives NAME STATUS WORD...
outlives()
{
	local name=$1 status=$2 tool child
	shift 2
	rm -f "$work/lines" "$work/gate" "$work/said"
	mkfifo "$work/gate"
	"$fiberize" trace -- "$helpers/outlives" 20 "$@" <"$work/gate" >"$work/said" 2>"$work/lines" &
	tool=$!
	exec 9>"$work/gate"
	must eventually traces
	echo >&9
	must eventually grep -qs over "$work/said"
	child=$(cat "/proc/$tool/task/$tool/children")
	must eventually waits_at_end "${child% }"
	kill -CONT $tool
	wait $tool
	same "$name: its exit status" "$status" $?
	exec 9>&-
	same "$name: each call" 20 "$(grep -c ' usleep .* sleeps at outlives\.c:' "$work/lines")"
	like "$name: how many" 'fiberize: * calls blocked in * s, 0 events lost' "$(tail -n 1 "$work/lines")"
}

outlives 'it ends while the tool is stopped' 3
outlives 'it is killed while the tool is stopped' 137 kill

# Signals of the program, and what its parent may ask of it, go through the tool.
cat >"$work/signals.py" <<'END'
import os, signal, threading, time
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
threading.Thread(target=time.sleep, args=(0.01,)).start()
for _ in range(50):
    os.kill(os.getpid(), signal.SIGUSR1)
child = os.fork()
if not child:
    time.sleep(0.05)
    os.kill(os.getppid(), signal.SIGCONT)
    os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(child, 0)
print(len(got))
os.kill(os.getpid(), signal.SIGTERM)
END
run "$fiberize" trace --summary -- python3 "$work/signals.py"
same 'signals of the program' '143 50' "$code $out"

# ---- bad input

refused 'no process' 2 '*process id or a program is needed*' "$fiberize" trace
refused 'no number' 2 '*x1: not a process id*' "$fiberize" trace x1
refused 'no such option' 2 '*--wide: no such option*' "$fiberize" trace --wide 1
refused 'no time' 2 '*--seconds 0: not a number above 0*' "$fiberize" trace --seconds 0 1
refused 'not fiberized' 107 '*libfiberize.so is not in this process' "$fiberize" trace $$
refused 'no file' 1 '*/no/such/file: No such file*' "$fiberize" trace --json /no/such/file -- true

# ---- probes

probes='announce complete park preempt submit switch wake wire'
same 'probes in the library' "$probes" "$(readelf -n "$library" | awk '/Provider: fiberize/ { on = 1 }
	/Name:/ && on { print $2; on = 0 }' | sort -u | tr '\n' ' ' | sed 's/ $//')"

# What gdb finds at a probe: "NAME COUNT ARGUMENT...".  The file tids has the threads that are there while
# the process stands at it.
at_probe()
{
	limited gdb -p "$pid" -batch -ex "tbreak -probe-stap fiberize:$1" -ex continue \
		-ex "printf \"$1 %d %ld %ld\n\", \$_probe_argc, (long)\$_probe_arg0, (long)\$_probe_arg1" \
		-ex "shell '$fiberize' ps $pid >'$work/threads'" 2>/dev/null | grep "^$1 "
}

start "$fiberize" --processors 2 "$helpers/traced"
for probe in $probes; do
	read -r name count thread _ <<<"$(at_probe "$probe")"
	case $probe in
	park) wanted=4 ;;
	submit) wanted=4 ;;
	switch | complete | wire) wanted=3 ;;
	*) wanted=2 ;;
	esac
	same "gdb: arguments of $probe" "$probe $wanted" "$name $count"
	case $probe in
	park | wake | announce | submit) has "gdb: the thread at $probe" "$work/threads" "^ *$thread [a-z]" ;;
	esac
done

# Each probe with the arguments that the manual names.
cat >"$work/probes.bt" <<BPFTRACE
usdt:$library:fiberize:park { @park[arg1] = count(); }
usdt:$library:fiberize:wake { @wake[arg1] = count(); }
usdt:$library:fiberize:switch { @switch[arg2] = count(); }
usdt:$library:fiberize:submit { @submit[arg1] = count(); @begun[arg3] = arg0; }
usdt:$library:fiberize:complete /@begun[arg0]/ { @complete[arg2] = count(); }
usdt:$library:fiberize:announce { @announce[arg0] = count(); }
usdt:$library:fiberize:preempt { @preempt[arg1] = count(); }
usdt:$library:fiberize:wire { @wire[str(arg2)] = count(); }
interval:s:3 { clear(@begun); exit(); }
BPFTRACE
if ! command -v bpftrace >/dev/null; then
	skip 'bpftrace' 'not installed'
elif ! timeout 60 bpftrace -e 'BEGIN { exit() }' >/dev/null 2>"$work/why"; then
	skip 'bpftrace' "not permitted here: it needs CAP_BPF and CAP_PERFMON: $(tail -1 "$work/why")"
else
	timeout 120 bpftrace -p "$pid" "$work/probes.bt" >"$work/seen" 2>&1
	# 0: for a time; 5: for a mutex (enum fz_waits_for); 0: an event, 1: a deadline (enum fz_why)
	for line in '@park\[0\]' '@park\[5\]' '@wake\[0\]' '@wake\[1\]' '@switch\[1\]' '@submit\[2[67]\]' \
		'@complete\[0\]' '@announce\[[0-9]*\]' '@preempt\[0\]' '@wire\[prctl\]'; do
		has "bpftrace: $line" "$work/seen" "^$line: [0-9]"
	done
fi
stop

# ---- what --verbose says: that it is loaded, what it has decided, and why

start "$fiberize" --verbose --processors 2 "$helpers/traced"
has 'loaded' "$work/complaints" '^fiberize: .*traced\[[0-9]*\]: dormant until the first pthread_create; version .*, 2 processors, backend auto$'
has 'running' "$work/complaints" '^fiberize: version .*, 2 processors, io_uring$'
yes 'wired, and why' eventually grep -q 'becomes a kernel thread: prctl$' "$work/complaints"
stop
rm -f /tmp/traced.*
finish
