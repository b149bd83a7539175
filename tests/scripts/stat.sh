#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/stat.sh - "fiberize stat": what became of each call, exactly; the file of --stats
# after SIGTERM and SIGKILL, after fork, and beside another one; the three formats; processes and
# files that cannot be read; a process that is looked at a thousand times.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../lib/judge.inc"
need jq promtool setpriv
chmod 755 "$work"

cat >"$work/calls.c" <<'PROGRAM'
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t over;

static void *naps(void *arg)
{
	for (int i = 0; i < 100; i++)
		usleep(1);
	return arg;
}

static void *locks(void *arg)
{
	int fd = open(arg, O_CREAT | O_RDWR, 0600);

	for (int i = 0; i < 10; i++)
		flock(fd, LOCK_EX);
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
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && strcmp(argv[1], "talk") == 0)
		talk();
	if (argc > 1 && strcmp(argv[1], "alone") != 0) {
		run(naps, NULL, 3);
		run(locks, argv[1], 1);
		run(wires, NULL, 2);
	}
	if (argc > 2)
		run(opens, argv[2], 1);
	if (argc > 3 && fork() == 0) {
		run(naps, NULL, 5);
		puts("child");
		pause();
	}
	puts("ready");
	pause();
	return 0;
}
PROGRAM
must "$CC" -O1 -Wall -Wno-unused-result -pthread -o "$work/calls" "$work/calls.c"
calls=$work/calls

# start COMMAND...: sets pid, when the program has said "ready"
start()
{
	: >"$work/said"
	"$@" >"$work/said" 2>"$work/complaints" &
	pid=$!
	must eventually grep -qs ready "$work/said"
}

stop()
{
	kill -"${1-KILL}" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}
at_exit stop

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
	same "$1: flock is announced" '10 0 0 10 0 0' "$(became flock)"
	same "$1: open is answered at once" '8 8 0 0 0 0' "$(became open)"
	same "$1: a robust mutex wires" '2 0 0 0 0 2' "$(became pthread_mutex_lock)"
	same "$1: the reason" 2 "$(field '.wired["a robust or priority-inheriting mutex"]')"
	same "$1: fibers wired" 2 "$(field .fibers_wired)"
	same "$1: threads made, with main" 7 "$(field '.fibers_created + .fibers_recycled')"
	same "$1: fibers alive" 1 "$(field .fibers)"
	same "$1: most threads" 4 "$(field .threads_most)"
	same "$1: waits for time" 300 "$(field .waits.time)"
	yes "$1: switches and requests" jq -e \
		'.switches > 300 and .kernel_threads > 0 and .stack_bytes > 0 and .table_bytes > 0' <<<"$out"
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
		stop $signal
		stat "$work/calls.$pid.stats"
		judge "$backend, after SIG$signal"
	done
done
same 'a file says nothing' '' "$(cat "$work/complaints")"
run "$fiberize" stat "$work/calls.$pid.stats"
like 'text' "calls: process $pid, *300 * 300 * usleep (user space)*WAITS*time*to run*" "$out"
"$fiberize" stat --prometheus "$work/calls.$pid.stats" >"$work/metrics"
must promtool check metrics <"$work/metrics"
same 'for Prometheus' 300 "$(sed -n \
	's/^fiberize_calls_total{function="usleep",.*outcome="parked"} //p' "$work/metrics")"

# ---- a brief call that takes long

mkfifo "$work/fifo"
start "$fiberize" --processors 1 --stats "$calls" talk &
"$fiberize" --stats="$work/late.stats" "$calls" alone "$work/fifo" >"$work/late" &
pid=$!
blocked()
{
	"$fiberize" stat --json "$pid" 2>/dev/null |
		jq -e '.calls[]? | select(.function == "open") | .by_fibers == 1'
}
must eventually blocked >/dev/null
# Some looks of the monitor, which are a millisecond apart on an idle machine.
taken()
{
	"$fiberize" ps --json "$pid" 2>/dev/null | jq -e '.threads[] | select(.state == "in a call")'
}
must eventually taken >/dev/null
sleep 1
: >"$work/fifo"
must eventually grep -q ready "$work/late"
stat "$pid"
same 'a call that is found late' '1 0 0 0 1 0' "$(became open)"
stop

finish
