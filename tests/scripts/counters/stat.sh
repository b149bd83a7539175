#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/counters/stat.sh - "fiberize stat": what became of each call, exactly; the file of --stats
# after SIGTERM and SIGKILL, after fork, and beside another one; the three formats; processes and
# files that cannot be read; a process that is looked at many times, a file that becomes another's.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq promtool setpriv
chmod 755 "$work"

cat >"$work/calls.c" <<'PROGRAM'
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t over;

/* With a barrier, these threads live at one time. */
static void *naps(void *together)
{
	if (together)
		pthread_barrier_wait(together);
	for (int i = 0; i < 100; i++)
		usleep(1);
	return NULL;
}

static void *makes(void *arg)
{
	int fd = open(arg, O_CREAT | O_RDWR, 0600);

	for (int i = 0; i < 10; i++)
		if (vfork() == 0)
			_exit(0);
	for (int i = 0; i < 7; i++)
		close(open("/dev/null", O_RDONLY));
	close(fd);
	return NULL;
}

static void *wires(void *arg)
{
	pthread_mutexattr_t robust;
	pthread_mutex_t m;

	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&m, &robust);
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

static void *opens(void *fifo)
{
	close(open(fifo, O_RDONLY));
	return NULL;
}

/* Passes on what is there: no call of its own has to wait. */
static void *passes_on(void *together)
{
	struct pollfd p = { .events = POLLIN };
	char message[100] = "";
	int fds[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	p.fd = fds[1];
	pthread_barrier_wait(together);
	for (int i = 0; i < 1000; i++)
		if (write(fds[0], message, sizeof(message)) != sizeof(message) ||
		    poll(&p, 1, -1) != 1 ||
		    read(fds[1], message, sizeof(message)) != sizeof(message))
			abort();
	return NULL;
}

/*
 * Another process answers, so that this thread has nobody beside it while it waits.  An answer that takes long, on a
 * busy machine, ends this for thousands of waits.
 */
static void *awaits(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	const int epoll = epoll_create1(0);
	int fds[2];
	char c = 'x';

	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	if (fork() == 0) {
		close(fds[0]);
		while (read(fds[1], &c, 1) == 1 && write(fds[1], &c, 1) == 1)
			continue;
		_exit(0);
	}
	close(fds[1]);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event);
	for (int i = 0; i < 20000; i++)
		if (write(fds[0], &c, 1) != 1 || epoll_wait(epoll, &event, 1, -1) != 1 ||
		    read(fds[0], &c, 1) != 1)
			abort();
	close(fds[0]);
	return arg;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t mtx;

/* Each lock is free when it is locked and unlocked again. */
static void *locks(void *how)
{
	const struct timespec late = { .tv_sec = 0x7fffffff };

	switch ((intptr_t)how) {
	case 0: pthread_mutex_lock(&mutex); break;
	case 1: pthread_mutex_timedlock(&mutex, &late); break;
	case 2: pthread_rwlock_rdlock(&rwlock); break;
	case 3: pthread_rwlock_wrlock(&rwlock); break;
	case 4: pthread_rwlock_timedwrlock(&rwlock, &late); break;
	case 5: mtx_lock(&mtx); break;
	}
	switch ((intptr_t)how) {
	case 0: case 1: pthread_mutex_unlock(&mutex); break;
	case 2: case 3: case 4: pthread_rwlock_unlock(&rwlock); break;
	case 5: mtx_unlock(&mtx); break;
	}
	return NULL;
}

/* Holds all locks, which threads ask for, until standard input has a line. */
static void *holds(void *arg)
{
	pthread_t t[6];
	char c;

	pthread_mutex_lock(&mutex);
	pthread_rwlock_wrlock(&rwlock);
	mtx_lock(&mtx);
	for (intptr_t i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, locks, (void *)i);
	if (read(STDIN_FILENO, &c, 1) != 1)
		abort();
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_unlock(&rwlock);
	mtx_unlock(&mtx);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	return arg;
}

static void run(void *(*fn)(void *), void *arg, int threads)
{
	pthread_t t[8];

	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, fn, arg);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

static void *echo(void *arg)
{
	const int fd = *(int *)arg;
	long n = 0;
	char c;

	while (read(fd, &c, 1) == 1 && c != '.' && ++n)
		write(fd, &c, 1);
	return (void *)n;
}

static void *ask(void *arg)
{
	const int fd = *(int *)arg;
	long n = 0;
	char c = 'x';

	while (!over && ++n) {
		write(fd, &c, 1);
		if (read(fd, &c, 1) != 1 || c != 'x')
			abort();
	}
	write(fd, ".", 1);
	return (void *)n;
}

static void end(int sig)
{
	(void)sig;
	over = 1;
}

/* Threads ask threads until SIGUSR1, and count themselves what they did. */
static void talk(void)
{
	enum { PAIRS = 8 };
	pthread_t t[2 * PAIRS];
	int fds[PAIRS][2];
	long asked = 0;
	void *n;

	signal(SIGUSR1, end);
	for (int i = 0; i < PAIRS; i++) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]);
		pthread_create(&t[2 * i], NULL, echo, &fds[i][0]);
		pthread_create(&t[2 * i + 1], NULL, ask, &fds[i][1]);
	}
	puts("ready");
	for (int i = 0; i < 2 * PAIRS; i++) {
		pthread_join(t[i], &n);
		asked += i % 2 ? (long)n : 0;
	}
	/* Each pair reads and writes twice for each question, and once for the end of all. */
	printf("reads %ld\n", 2 * asked + PAIRS);
	pause();
}

int main(int argc, char **argv)
{
	pthread_barrier_t together;

	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&together, NULL, 3);
	if (argc > 1 && strcmp(argv[1], "talk") == 0)
		talk();
	if (argc > 1 && strcmp(argv[1], "pass") == 0) {
		run(passes_on, &together, 3);
	} else if (argc > 1 && strcmp(argv[1], "await") == 0) {
		run(awaits, NULL, 1);
	} else if (argc > 1 && strcmp(argv[1], "locks") == 0) {
		mtx_init(&mtx, mtx_plain);
		for (intptr_t i = 0; i < 6; i++)
			run(locks, (void *)i, 1);
		run(holds, NULL, 1);
	} else if (argc > 1 && strcmp(argv[1], "alone") != 0) {
		run(naps, &together, 3);
		run(makes, argv[1], 1);
		run(wires, NULL, 2);
	}
	if (argc > 2)
		run(opens, argv[2], 1);
	if (argc > 3 && fork() == 0) {
		run(naps, NULL, 5);
		printf("child %d\n", (int)getpid());
		pause();
	}
	puts("ready");
	pause();
	return 0;
}
PROGRAM
must "$CC" -O1 -Wall -Wno-unused-result -pthread -o "$work/calls" "$work/calls.c"
calls=$work/calls

gone()
{
	! kill -0 "$1" 2>/dev/null
}

stat()
{
	run "$fiberize" stat --json "$1"
}

# field FILTER: what jq makes of the last stat
field()
{
	jq -r "$1" <<<"$out"
}

# became FUNCTION: by fibers, at once, parked, announced, late, wired
became()
{
	field ".calls[] | select(.function == \"$1\") | [.by_fibers, .at_once, .parked, .announced,
		.late, .wired] | join(\" \")"
}

# What the program above has done, by the last stat.
judge()
{
	same "$1: usleep parks" '300 0 300 0 0 0' "$(became usleep)"
	# It waits for the end of its child, unless that has ended by then.
	same "$1: no vfork holds up a processor" '10 10' "$(field '.calls[] | select(.function == "vfork") |
		"\(.by_fibers) \(.at_once + .parked + .announced)"')"
	same "$1: open is answered at once" '8 8 0 0 0 0' "$(became open)"
	same "$1: a robust mutex wires" '2 0 0 0 0 2' "$(became pthread_mutex_lock)"
	same "$1: the reason" 2 "$(field '.wired["a robust or priority-inheriting mutex"]')"
	same "$1: fibers wired" 2 "$(field .fibers_wired)"
	same "$1: threads made, with main" 7 "$(field '.fibers_created + .fibers_recycled')"
	same "$1: fibers alive" 1 "$(field .fibers)"
	same "$1: most threads" 4 "$(field .threads_most)"
	# The end waits, too.
	same "$1: waits, switches, memory" true "$(field '.waits.sleep >= 300 and .switches > 300 and
		.kernel_threads > 0 and .stack_bytes > 0 and .table_bytes > 0')"
}

# ---- each call, in the process and in the file

for backend in uring epoll; do
	for signal in TERM KILL; do
		rm -f "$work"/calls.*.stats
		start "$fiberize" --backend $backend --stats="$work/%n.%p.stats" "$calls" "$work/lock"
		stat "$pid"
		judge "$backend, alive"
		same "$backend: no descriptor stays" 0 \
			"$(find "/proc/$pid/fd" -lname "$work/*.stats*" | wc -l)"
		stop_by $signal
		stat "$work/calls.$pid.stats"
		judge "$backend, after SIG$signal"
	done
done
same 'a file says nothing' '' "$(cat "$work/complaints")"
run "$fiberize" stat "$work/calls.$pid.stats"
same 'a file has no resident memory' 0 "$(grep -c resident <<<"$out")"
like 'text' "calls: process $pid, * 2 fibers wired*300 * 300 * usleep (user space)*WAITS*sleep*to run*" "$out"
"$fiberize" stat --prometheus "$work/calls.$pid.stats" >"$work/metrics"
must promtool check metrics <"$work/metrics"
same 'for Prometheus' 300 "$(sed -n \
	's/^fiberize_calls_total{function="usleep",.*outcome="parked"} //p' "$work/metrics")"

# ---- locks that are held are counted, locks that are free are not

mkfifo "$work/release"
"$fiberize" --stats="$work/locks.stats" "$calls" locks <>"$work/release" >"$work/said" &
pid=$!
# Each waits for its lock.
all_wait()
{
	# Not by jq -e: without output, as of a process that has only begun, that succeeds, too.
	[ "$("$fiberize" stat --json "$pid" 2>/dev/null | jq '[.calls[]? | select(.parked > 0 and
		(.function | test("mutex|rwlock|mtx"))).parked] | add == 6')" = true ]
}
yes 'each wait for a lock is a call that parked' eventually all_wait >/dev/null
echo >"$work/release"
must eventually grep -q ready "$work/said"
stat "$pid"
for lock in pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock mtx_lock; do
	same "$lock: the one that waited" '1 0 1 0 0 0' "$(became $lock)"
done
# These look at more than the lock.
for lock in pthread_mutex_timedlock pthread_rwlock_timedwrlock; do
	same "$lock: both" '2 1 1 0 0 0' "$(became $lock)"
done
stop

# ---- a brief call that takes long

mkfifo "$work/fifo"
"$fiberize" --stats="$work/late.stats" "$calls" alone "$work/fifo" >"$work/said" &
pid=$!
# The monitor has made the processor another's, or everybody's, when the thread is in no hurry.
opens()
{
	"$fiberize" stat --json "$pid" 2>/dev/null |
		jq '.calls[]? | select(.function == "open" and .by_fibers == 1)' | grep -q .
}
must eventually opens >/dev/null
must eventually monitor_rests
: >"$work/fifo"
must eventually grep -q ready "$work/said"
stat "$pid"
same 'a call that is found late' '1 0 0 0 1 0' "$(became open)"
same 'memory that is resident' true "$(field '.resident_bytes > 0 and .resident_bytes < .stack_bytes')"
run "$fiberize" stat "$pid"
like 'memory that is resident, in words' '*memory  * MB of the process are resident; address space: stacks *' "$out"
run "$fiberize" stat --prometheus "$pid"
has 'memory that is resident, for Prometheus' "$work/out" '^fiberize_resident_bytes [1-9]'
stop

# ---- children

# with_child FILE: sets pid and child
with_child()
{
	start "$fiberize" --stats="$1" "$calls" alone /dev/null fork
	must eventually grep -qs child "$work/said"
	child=$(sed -n 's/^child //p' "$work/said")
}

without_child()
{
	kill -KILL "$child"
	stop
}

with_child "$work/%p.stats"
stat "$work/$child.stats"
same 'a child with threads has its own file' '500 500' "$(field \
	'[.calls[] | select(.function == "usleep") | .by_fibers, .parked] | join(" ")')"
stat "$work/$pid.stats"
same 'what a child calls is not its parents' '' "$(became usleep)"
same 'what the parent calls' 1 "$(field '.calls[] | select(.function == "fork").by_fibers')"
without_child

with_child "$work/one.stats"
stat "$child"
same 'a child without a file counts' 500 "$(field '.calls[] | select(.function == "usleep").by_fibers')"
stat "$work/one.stats"
same 'the file is the parents' "$pid" "$(field .pid)"
same 'what a child calls is not its parents, in one file' '' "$(became usleep)"

# ---- whose file it is

first=$pid
start "$fiberize" --stats="$work/one.stats" "$calls" "$work/lock"
like 'the file of a living process stays' '*no counters in */one.stats: *lives*' "$(cat "$work/complaints")"
stat "$work/one.stats"
same 'it is still of the first' "$first" "$(field .pid)"
stat "$pid"
judge 'without the file'
stop
if unshare --pid --fork true 2>/dev/null; then
	start unshare --pid --fork --kill-child "$fiberize" --stats="$work/one.stats" "$calls" "$work/lock"
	like 'in another PID namespace, too' '*no counters in */one.stats: *lives*' "$(cat "$work/complaints")"
	stat "$work/one.stats"
	same 'in another PID namespace, too: it is still of the first' "$first" "$(field .pid)"
	stop
else
	skip 'in another PID namespace, too' 'may not make one'
fi
kill -KILL "$child" "$first"
wait "$first" 2>/dev/null
must eventually gone "$first"
start "$fiberize" --stats="$work/one.stats" "$calls" "$work/lock"
stat "$work/one.stats"
same 'the file of a dead process is replaced' "$pid" "$(field .pid)"
stop
echo precious >"$work/other.txt"
start "$fiberize" --stats="$work/other.txt" "$calls" "$work/lock"
like 'another file stays' '*no counters in */other.txt: it is another file*' "$(cat "$work/complaints")"
same 'another file keeps its text' precious "$(cat "$work/other.txt")"
stop
start "$fiberize" --stats="$work/none/at.all" "$calls" "$work/lock"
like 'no such directory' '*no counters in */none/at.all: ENOENT*' "$(cat "$work/complaints")"
stop

# ---- without --stats

start "$fiberize" "$calls" "$work/lock"
run "$fiberize" stat "$pid"
like 'without --stats: text' "calls: process $pid, *fibers * 1 alive*not counted*--stats*" "$out"
stat "$pid"
same 'without --stats: what costs nothing' true "$(field \
	'(has("calls") | not) and .switches > 0 and .fibers_wired == 2 and .threads_most == 4')"
same 'without --stats: its name' calls "$(field .program)"
"$fiberize" stat --prometheus "$pid" >"$work/metrics"
must promtool check metrics <"$work/metrics"
has 'without --stats: its name among the metrics' "$work/metrics" '^fiberize_process_info{pid="[0-9]*",program="calls",'
refused 'another user' 106 '*not allowed*ptrace*' \
	setpriv --reuid 65534 --clear-groups "$fiberize" stat "$pid"
stop
refused 'the process is gone' 105 '*no such process' "$fiberize" stat "$pid"

# ---- a thread that passes on what is there makes its own calls, though others are about to run

start "$fiberize" --processors 1 --stats="$work/pass.stats" "$calls" pass
stat "$pid"
same 'passing on: all sends are counted' true \
	"$(field '.calls[] | select(.function == "write") | .by_fibers >= 3000')"
yes 'passing on: a send does not wait for the other threads' test 300 -ge \
	"$(field '.calls[] | select(.function == "write").parked')"
stop

# ---- a thread that is alone announces its waits, but not the reads for which epoll has reported data

start "$fiberize" --stats="$work/await.stats" "$calls" await
stat "$pid"
yes 'alone: waits are announced' test 200 -le \
	"$(field '.calls[] | select(.function == "epoll_wait").announced')"
yes 'alone: reads are not' test 16000 -le \
	"$(field '.calls[] | select(.function == "read").at_once')"
stop

# ---- many times, while it works

looks=${FZ_ALL:+1000} looks=${looks:-100}
start "$fiberize" --stats="$work/talk.stats" "$calls" talk
"$fiberize" stat "$pid" 0.01 >"$work/rates" &
watcher=$!
for ((i = 0; i < looks; i++)); do
	"$build/libexec/inspect" stat --json "$pid" >"$work/out" || break
done
same 'stat many times' "$looks" "$i"
kill -USR1 "$pid"
must eventually grep -q '^reads' "$work/said"
reads=$(sed -n 's/^reads //p' "$work/said")
stat "$pid"
same 'no call is lost' "$reads" "$(field '.calls[] | select(.function == "read").by_fibers')"
same 'times are counted' true "$(field '.time_to_run.count > 0 and .time_to_completion.count > 0')"
stop
must wait "$watcher"
yes 'rates, until the process ends' awk 'NF != 8 { exit 1 } END { exit NR < 3 }' "$work/rates"

# ---- rates of a file that becomes another process's while both live

start "$fiberize" --stats="$work/first.stats" "$calls" "$work/lock"
first=$pid
start "$fiberize" --stats="$work/second.stats" "$calls" "$work/lock"
"$fiberize" stat "$work/second.stats" 0.01 >"$work/file-rates" &
watcher=$!
must eventually test -s "$work/file-rates"
mv "$work/first.stats" "$work/second.stats"
yes 'rates of a file end with its process' wait "$watcher"
same 'rates of a file: none between two processes' 0 "$(grep -c '[0-9]\{16\}' "$work/file-rates")"
kill -KILL "$first" 2>/dev/null
wait "$first" 2>/dev/null
stop

# ---- bad input

for length in 8 12 1000; do
	head -c $length "$work/talk.stats" >"$work/short.stats"
	refused "a file that is cut short to $length bytes" 107 '*short.stats: the file is cut short' \
		"$fiberize" stat "$work/short.stats"
done
refused 'no counters' 107 '*other.txt: no counters*' "$fiberize" stat "$work/other.txt"
{ head -c 8 "$work/talk.stats"; printf '\377\0\0\0'; tail -c +13 "$work/talk.stats"; } >"$work/new.stats"
refused 'another version' 108 '*new.stats: counters in version 255*' "$fiberize" stat "$work/new.stats"
refused 'no such file' 1 '*x1: No such file*' "$fiberize" stat x1
refused 'not fiberized' 107 '*libfiberize.so is not in this process' "$fiberize" stat $$
must mkfifo "$work/unwritten"
refused 'a FIFO' 107 '*unwritten: no counters*' "$fiberize" stat "$work/unwritten"
refused 'nothing to read' 2 '*process id or file is needed*' "$fiberize" stat
refused 'no such option' 2 '*--wide: no such option*' "$fiberize" stat --wide 1
refused 'no interval' 2 '*0: not a number of seconds*' "$fiberize" stat 1 0
refused 'two formats' 2 '*--prometheus: neither*' "$fiberize" stat --prometheus --json 1
refused 'no file' 2 '*--stats=yes: must be 0, 1, or the name of a file*' "$fiberize" --stats=yes true
refused 'no such part of a name' 2 '*%q*must be*' "$fiberize" --stats=/tmp/%q true
finish
