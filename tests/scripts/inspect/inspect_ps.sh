#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_ps.sh - "fiberize ps": wired and native threads with the reason, who waits for whom,
# filters and order, --stop, many threads, other PID namespaces; processes that end, fork or execute meanwhile.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq gdb python3 unshare

threads()
{
	run "$fiberize" ps --json "$@" "$pid"
}

kernel_threads()
{
	local tasks=("/proc/$pid/task"/*)
	echo "${#tasks[@]}"
}

# threads() while no kernel thread comes or goes; sets before to how many there are
steady()
{
	before=$(kernel_threads)
	threads
	[ "$before" = "$(kernel_threads)" ]
}

# ask FILTER: of what threads() has found
ask()
{
	jq -r "$1" <<<"$out"
}

# ---- a deadlock of threads of three sorts

tangled()
{
	threads
	[ "$(ask '.deadlocks | length')" = 1 ]
}

tangle()
{
	local backend=$1
	start "$fiberize" --backend "$backend" "$helpers/tangle"
	must eventually tangled
	# shellcheck disable=SC2016 # jq's variables
	same "$backend: the circle" 'pinned plain wired' \
		"$(ask '. as $all | .deadlocks[0] | map(. as $tid | $all.threads[] | select(.tid == $tid).name) | sort | join(" ")')"
	same "$backend: states" 'pinned native, plain waits, wired wired' \
		"$(ask '[.threads[] | select(.main | not) | "\(.name) \(.state)"] | sort | join(", ")')"
	same "$backend: reasons" 'its attributes ask for CPUs, a policy or a stack of its own; prctl' \
		"$(ask '[.threads[] | .why // empty] | sort | join("; ")')"
	same "$backend: all asleep" true "$(ask .all_asleep)"
	same "$backend: the library's kernel threads" 'carrier, carrier spawner, monitor' \
		"$(ask '[.library_threads[].why] | unique | join(", ")')"
	must eventually steady
	same "$backend: each kernel thread once" "$before" \
		"$(ask '[(.threads, .library_threads)[] | .kernel_tid // empty] | unique | length')"
	run "$fiberize" ps --tree "$pid"
	like "$backend: the tree" "*pinned *rwlock to write*plain *  mutex*held by * \"pinned\"*wired *    join*" \
		"$(grep -A3 "pinned  *rwlock" <<<"$out")"
	like "$backend: in words" "*deadlock:*all asleep: each thread waits for another one*" "$out"
	stop
}

tangle uring
tangle epoll

start "$fiberize" "$helpers/tangle" sleeper
must eventually tangled
same 'one sleeps: not all asleep' false "$(ask .all_asleep)"
stop

blocked()
{
	threads
	[ "$(ask '[.threads[] | select(.waits_for)] | length')" = "$1" ]
}

# ---- the process says it by itself

# says PATTERN HOW
says()
{
	start "$fiberize" --deadlock report "$helpers/tangle" "$2"
	must eventually grep -qs '^fiberize: ' "$work/complaints"
	like "FIBERIZE_DEADLOCK: ${2:-a circle}" "$1" "$(cat "$work/complaints")"
	stop
}

says "*deadlock of 3 threads;*(wired) waits for the end of *" ''
says "*deadlock of 3 threads;*(plain) waits for a mutex held by *" sleeper
says "*deadlock of 3 threads;*(wired) waits for the end of *" ended
says '*all 2 threads are asleep: *' asleep

start "$fiberize" --deadlock report "$helpers/tangle" deadline
must eventually blocked 4
like 'a deadline of a native thread' 'rwlock to write*, for 99*.* s more' \
	"$(ask '.threads[] | select(.name == "pinned").detail')"
same 'a deadline: no deadlock' '0 false' "$(ask '"\(.deadlocks | length) \(.all_asleep)"')"
must eventually monitor_rests
same 'a deadline: nothing is said' '' "$(cat "$work/complaints")"
stop

# ---- filters and order

settled()
{
	threads
	[ "$(ask '[.threads[] | select(.state == "waits")] | length')" = 13 ]
}

# names OPTION...: of the threads that are listed, in their order
names()
{
	threads "$@"
	ask '[.threads[].name] | join(" ")'
}

start "$fiberize" "$helpers/waiters"
must eventually settled
same '--name' 'writes writes-too' "$(names --name 'writes*')"
same '--state' computes "$(names --state 'runs,queued,in a call')"
same '--state library' '' "$(names --state library)"
same '--wait' 'writes-too reads-too' "$(names --wait 'rwlock*')"
same '--fd' 'reads polls' "$(names --fd "$(ask '.threads[] | select(.name == "reads").fd')")"
same '--sort' 'takes takes-first takes-second' "$(names --sort name --name 'takes*')"
same '--sort: the most first' computes "$(names --sort cpu | cut -d' ' -f1)"
same '--longer' '' "$(names --longer 100000)"
run "$fiberize" ps --hex --name polls "$pid"
like '--hex' "*0x40* waits * polls *" "$out"
like 'waits are counted' '[1-9]*' "$(threads --name awaits; ask '.threads[0].switches')"

refused 'no such state' 2 '*--state naps: not one of runs, *' "$fiberize" ps --state naps "$pid"
refused 'no such key' 2 '*--sort size: not one of tid, *' "$fiberize" ps --sort size "$pid"
refused 'no number' 2 '*--longer x: must be a number of seconds from 0 to 2147483647' "$fiberize" ps --longer x "$pid"
refused 'no descriptor' 2 '*--fd 1.5: must be a whole number from 0 to 2147483647' "$fiberize" ps --fd 1.5 "$pid"
refused 'no value' 2 '*--sort: needs a value*' "$fiberize" ps --sort
refused 'a tree is no list' 2 '*--tree*' "$fiberize" ps --tree --name x "$pid"
stop

# ---- --stop: at one time, and no harm

still()
{
	threads --stop
	[ "$(ask .consistent)" = true ]
}

start "$fiberize" "$helpers/tangle"
must eventually tangled
yes '--stop: a picture of one time' eventually still
# shellcheck disable=SC2016 # gdb's shell expands it
gdb -p "$pid" -batch -ex "shell '$fiberize' ps --stop $pid 2>'$work/traced'; echo \$? >>'$work/traced'" \
	>/dev/null 2>&1
like '--stop: somebody else traces it' "fiberize: *another program traces it*${newline}106" "$(cat "$work/traced")"
stop

# The parent looks for a child that was stopped, as a shell does.
cat >"$work/parent.py" <<'END'
import os, subprocess, sys
fiberize, program = sys.argv[1:]
child = subprocess.Popen([fiberize, program], stdout=subprocess.PIPE)
child.stdout.readline()
for _ in range(20):
    subprocess.run([fiberize, "ps", "--stop", str(child.pid)], stdout=subprocess.DEVNULL, check=True)
print(os.waitpid(child.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG))
child.kill()
END
same '--stop: the parent does not notice' '(0, 0)' \
	"$(python3 "$work/parent.py" "$fiberize" "$helpers/waiters")"

cpu_ticks()
{
	cut -d' ' -f14 "/proc/$pid/stat"
}

computes()
{
	[ "$(cpu_ticks)" -gt "$before" ]
}

start "$fiberize" "$helpers/waiters"
for ((i = 0; i < 20; i++)); do
	"$fiberize" ps --stop "$pid" >/dev/null &
	# Most are killed while they read.
	sleep "0.0$((i % 4))"
	kill -KILL $!
	wait $! 2>/dev/null
done
before=$(cpu_ticks)
yes '--stop: the process goes on when ps was killed' eventually computes
same '--stop: nobody traces it any more' 0 "$(grep -c 'TracerPid:.[1-9]' "/proc/$pid"/task/*/status | grep -vc ':0')"
stop

# A thread that stops when the time is over, as one may that the kernel gives much memory at once, goes on although
# what ps prints is not read.
cat >"$work/large.py" <<'END'
import mmap, os, sys, threading, time
POPULATE = 0x8000
threading.Thread(target=time.sleep, args=(100000,), daemon=True).start()
rounds = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("ready", flush=True)
for i in range(10 ** 9):
    mmap.mmap(-1, 128 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | POPULATE).close()
    os.pwrite(rounds, b"%9d" % i, 0)
END

# Does it wait in write()?  This is its number on either CPU.
writes()
{
	local number
	read -r number _ 2>/dev/null <"/proc/$1/syscall" && [[ $number = 1 || $number = 64 ]]
}

goes_on()
{
	[ "$(cat "$work/rounds")" -gt "$before" ]
}

mkfifo "$work/unread"
exec {unread}<>"$work/unread"
dd if=/dev/zero of="$work/unread" bs=4096 oflag=nonblock 2>/dev/null
start "$fiberize" python3 "$work/large.py" "$work/rounds"
must eventually test -s "$work/rounds"
for ((i = 0; i < 5; i++)); do
	"$fiberize" ps --stop "$pid" >"$work/unread" &
	must eventually writes $!
	before=$(cat "$work/rounds")
	yes '--stop: a late thread goes on while nobody reads' eventually goes_on
	yes '--stop: its stop does not end what ps waits in' writes $!
	kill -KILL $!
	wait $! 2>/dev/null
done
exec {unread}>&-
stop

# ---- a process that does nothing from its start

start "$fiberize" "$helpers/crowd" 3
threads
same 'since when each waits' '4 0' \
	"$(ask '"\([.threads[] | select(.waits_s != null)] | length) \([.threads[] | select(.waits_s == null)] | length)"')"
stop

# ---- many threads

start "$fiberize" "$helpers/crowd" 20000
threads --count
same 'each is counted' '20001 20001' "$(ask '"\(.states.waits) \(.alive)"')"
same '--count: says nothing of what it does not look for' 'alive open_processors pid processors states' \
	"$(ask '[to_entries[] | select(.value != null).key] | sort | join(" ")')"
if command -v strace >/dev/null; then
	must strace -f -qq -e trace=process_vm_readv -o "$work/reads" "$fiberize" ps --count "$pid" >/dev/null
	yes 'a system call reads many' [ "$(wc -l <"$work/reads")" -lt 1000 ]
else
	skip 'a system call reads many' 'strace is not installed'
fi
threads
same 'each is listed, once' 20001 "$(ask '[.threads[].tid] | unique | length')"
# The most memory, in KB, that "fiberize ps" has taken
peak()
{
	python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$fiberize" ps "$@" "$pid"
}
# An object of json-c for each thread would take 50 MB.
yes '--json: is not kept in memory' [ "$(peak --json)" -lt $(($(peak) + 16384)) ]
stop

# ---- threads that end while they are read

# staying: how many threads that stay ps lists, and what it says on standard error
staying()
{
	printf '%s %s\n' "$("$fiberize" ps --wait 'condition variable' "$pid" 2>"$work/err" | grep -c 'condition variable 0x')" "$(cat "$work/err")"
}

start "$fiberize" "$helpers/crowd" 100 4
same 'threads come and go: each that stays is listed' '100 ' \
	"$(for ((i = 0; i < 20; i++)); do staying; done | sort -u)"
stop
start "$fiberize" "$helpers/crowd" 100
size=$(gdb -nx -batch -ex 'output sizeof(struct fz_fiber)' "$library" 2>/dev/null)
export LOST_READS_SIZE=$size
same 'records are lost: each that stays is listed' '100 ' "$(LD_PRELOAD=$helpers/lost_reads.so staying)"
LD_PRELOAD=$helpers/lost_reads.so run "$fiberize" ps --count "$pid"
like 'records are lost: each is counted' '101 threads on *' "$out"
stop

# ---- another PID namespace

if unshare --pid --fork --mount-proc true 2>/dev/null; then
	start unshare --pid --fork --kill-child "$fiberize" "$helpers/tangle"
	outer=$pid
	pid=$(cat "/proc/$outer/task/$outer/children")
	pid=${pid% }
	must eventually tangled
	must eventually steady
	same 'a namespace: each kernel thread once' "$before" \
		"$(ask '[(.threads, .library_threads)[] | .kernel_tid // empty] | unique | length')"
	same 'a namespace: reasons' 2 "$(ask '[.threads[] | .why // empty] | length')"
	pid=$outer
	stop
fi

# ---- it ends, forks, executes meanwhile

# restless TIMES COMMAND...: until the process has ended, is there each time an answer, or one line that
# says why there is none?
restless()
{
	local times=$1 answers=0 bad='' code
	shift
	"$fiberize" "$helpers/restless" "$times" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		"$fiberize" "$@" "$pid" >"$work/ps" 2>"$work/ps.err"
		code=$?
		case $code:$(wc -l <"$work/ps.err") in
		0:[01]) answers=$((answers + 1)) ;;
		105:1 | 107:1) ;;
		*) bad="$bad $code: $(head -3 "$work/ps.err")" ;;
		esac
	done
	same "$*: forks, executes, ends: a documented exit code and one line" '' "$bad"
	yes "$*: forks, executes, ends: there were answers" [ "$answers" -gt 0 ]
	wait "$pid"
	same "$*: forks, executes, ends: unharmed" 0 $?
}

restless 200 ps
restless 100 ps --stop
restless 100 bt
restless 100 stat
restless 100 trace --summary --seconds 0.05

# ---- zombies and others

# A shell would reap the child when it ends before the shell's exec.
python3 -c '
import os, time
child = os.fork()
if not child:
    os._exit(0)
print(child, flush=True)
time.sleep(1000)' >"$work/zombie" &
pid=$!
zombie()
{
	[ -s "$work/zombie" ] && grep -qs 'State:.Z' "/proc/$(cat "$work/zombie")/status"
}
must eventually zombie
refused 'a zombie' 105 '*no such process' "$fiberize" ps "$(cat "$work/zombie")"
stop
finish
