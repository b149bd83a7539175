#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/counters/stats.sh - --stats: a report however the process ends, which ends as without the
# report; who reports; each call counted once.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

cat >"$work/ends.c" <<'PROGRAM'
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigset_t only;
static char **arguments;

static void *nap(void *arg)
{
	const struct timespec short_time = { .tv_nsec = 1000 };
	char line[8];
	DIR *names;
	FILE *in;

	usleep(1);
	usleep(1);
	nanosleep(&short_time, NULL);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
	if (fork() == 0)
		_exit(0);
	wait(NULL);
	if (fork() == 0)
		_exit(0);
	waitpid(-1, NULL, 0);
	if (system("true") == 0)
		pclose(popen("true", "r"));
	in = fopen("/dev/zero", "r");
	fgets(line, sizeof(line), in);
	fclose(in);
	names = opendir("/proc/self/task");
	while (readdir(names))
		continue;
	closedir(names);
	return arg;
}

/* fdopen() calls fcntl(). */
static int open_in_child(void *arg)
{
	_exit(fdopen(*(int *)arg, "r") ? 0 : 1);
}

static void *lend(void *arg)
{
	enum { SIZE = 1 << 18 };
	static _Alignas(16) char stack[SIZE];
	int fd = open("/dev/null", O_RDONLY), status = 1;
	pid_t child = clone(open_in_child, stack + SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, &fd);

	waitpid(child, &status, 0);
	if (status)
		exit(1);
	return arg;
}

static void run(void *(*fn)(void *))
{
	pthread_t t;

	pthread_create(&t, NULL, fn, NULL);
	pthread_join(t, NULL);
}

static void *compute(void *arg)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
	return arg;
}

static void *wait_long(void *arg)
{
	sleep(1000);
	return arg;
}

static void *overflow(void *arg)
{
	volatile char room[4096];

	room[0] = 1;
	overflow((void *)room);
	return arg;
}

static void *end_by(void *arg)
{
	const char *how = arguments[1];
	volatile int *nowhere = NULL, zero = 0;

	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		*nowhere = 1;
	if (strcmp(how, "fpe") == 0)
		zero = 7 / zero;
	if (strcmp(how, "trap") == 0)
		__builtin_trap();
	if (strcmp(how, "raise") == 0)
		raise(SIGUSR1);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGINT);
	if (strcmp(how, "realtime") == 0)
		kill(getpid(), SIGRTMIN + 3);
	if (strcmp(how, "alarm") == 0)
		alarm(1);
	if (strcmp(how, "reset") == 0) {
		signal(SIGTERM, SIG_IGN);
		raise(SIGTERM);
		signal(SIGTERM, SIG_DFL);
		raise(SIGTERM);
	}
	if (strcmp(how, "sigwait") == 0) {
		sigemptyset(&only);
		sigaddset(&only, SIGUSR2);
		kill(getpid(), SIGHUP);
	}
	if (strcmp(how, "pipe") == 0) {
		int ends[2];

		if (pipe(ends) == 0 && close(ends[0]) == 0 && write(ends[1], "x", 1) < 0)
			return arg;
	}
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "_Exit") == 0)
		_Exit(4);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(5);
	if (strcmp(how, "exit_group") == 0)
		syscall(SYS_exit_group, 6);
	if (strcmp(how, "inherited") == 0) {
		raise(SIGINT);
		exit(10);
	}
	if (strcmp(how, "exit") == 0)
		exit(7);
	if (strcmp(how, "exec") == 0)
		execl("/bin/sh", "sh", "-c", "exit 8", NULL);
	if (strcmp(how, "noexec") == 0) {
		execl("/no/such/program", "program", NULL);
		exit(errno == ENOENT ? 9 : 1);
	}
	if (strcmp(how, "overflow") == 0)
		overflow(NULL);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction old;

	arguments = argv;
	if (argc < 2)
		return 2;
	/* What the program sees is the default action. */
	if (sigaction(SIGTERM, NULL, &old) != 0 || old.sa_handler != SIG_DFL || old.sa_flags ||
	    signal(SIGQUIT, SIG_DFL) != SIG_DFL)
		return 1;
	if (strcmp(argv[1], "naps") == 0) {
		run(nap);
		return 0;
	}
	if (strcmp(argv[1], "lends") == 0) {
		run(lend);
		return 0;
	}
	if (strcmp(argv[1], "forks") == 0) {
		for (int i = 0; i < 2; i++)
			if (fork() == 0) {
				usleep(1);
				raise(i ? SIGTERM : SIGUSR1);
			}
		while (wait(NULL) > 0)
			continue;
		return 0;
	}
	if (strcmp(argv[1], "alone") == 0) {
		arguments[1] = argv[2];
		end_by(NULL);
	}
	if (strcmp(argv[1], "waits") == 0 || strcmp(argv[1], "computes") == 0) {
		pthread_t t;

		for (int i = 0; i < 3; i++)
			pthread_create(&t, NULL, argv[1][0] == 'w' ? wait_long : compute, NULL);
		puts("ready");
		fflush(stdout);
		pthread_join(t, NULL);
	}
	run(end_by);
	return 0;
}
PROGRAM
must "$CC" -O1 -Wall -Wno-div-by-zero -Wno-infinite-recursion -pthread -o "$work/ends" "$work/ends.c"
ends=$work/ends
# Core files say nothing here.
ulimit -c 0

# reports: how many processes have reported
reports() {
	grep -c '^fiberize: [a-z]*\[[0-9]*\]: \(running\|dormant\)' "$1"
}

# ---- every end

for how in abort segv fpe trap raise kill realtime alarm reset sigwait pipe \
	_exit _Exit quick_exit exit_group exit exec noexec overflow; do
	run "$ends" $how
	native=$code
	case $how in
	kill|segv|exec)	all=("" "--backend epoll" "--processors 1") ;;
	*)		all=("") ;;
	esac
	for options in "${all[@]}"; do
		# shellcheck disable=SC2086 # words
		run "$fiberize" --stats $options "$ends" $how
		same "$how $options: ends as natively" "$native" "$code"
		same "$how $options: one report of who runs" 1 \
			"$(grep -c '^fiberize: ends\[[0-9]*\]: running' "$work/err")"
		# The new thread may end the process before the other one joins it.
		has "$how $options: with counters" "$work/err" \
			'^fiberize: ends\[[0-9]*\]: pthread_create (tracked): 0 by fibers, 1'
	done
	case $how in
	overflow|sigwait) continue ;;
	esac
	run "$fiberize" --stats "$ends" alone $how
	same "$how before the first thread: ends as natively" "$native" "$code"
	[ $how = exec ] || same "$how before the first thread: one report" 1 "$(reports "$work/err")"
done

# ---- the end from outside

ended() {
	local signal=$1 what=$2 pid
	shift 2
	rm -f "$work/ready"
	mkfifo "$work/ready"
	"$@" "$ends" "$what" >"$work/ready" 2>"$work/err" &
	pid=$!
	read -r _ <"$work/ready"
	kill -"$signal" $pid
	# It reads what is left, and then the end of the file.
	wait $pid 2>/dev/null
	code=$?
}

# Not SIGINT and SIGQUIT: a shell lets what it runs in the background ignore them.
for signal in TERM HUP; do
	for what in waits computes; do
		ended $signal $what
		native=$code
		ended $signal $what "$fiberize" --stats
		same "SIG$signal while it $what: ends as natively" "$native" "$code"
		same "SIG$signal while it $what: one report" 1 "$(reports "$work/err")"
	done
done
(trap '' INT; exec "$fiberize" --stats "$ends" inherited 2>"$work/err")
same 'a signal that was ignored from the start stays ignored' 10 $?

# ---- nobody reads the report

mkfifo "$work/pipe"
exec 3<>"$work/pipe"
limited "$fiberize" --stats "$ends" kill 2>"$work/pipe"
same 'a pipe with room: ends by the signal' $((128 + 2)) $?
# Fill the pipe; what does not fit is not waited for.
dd if=/dev/zero of="$work/pipe" bs=4096 count=1024 oflag=nonblock 2>/dev/null
limited "$fiberize" --stats "$ends" alone kill 2>"$work/pipe"
same 'a full pipe: ends by the signal' $((128 + 2)) $?
exec 3>&-

# ---- who reports

run "$fiberize" --stats "$ends" forks
same 'parent and children: three reports' 3 "$(reports "$work/err")"
same 'parent and children: told apart' 3 \
	"$(sed -n 's/^fiberize: ends\[\([0-9]*\)\]: dormant$/\1/p' "$work/err" | sort -u | wc -l)"
same 'a child counts its own calls' 2 "$(grep -c ': usleep (user space): 0 by fibers, 1 ' "$work/err")"
same 'a child does not count what its parent called' 1 "$(grep -c ': fork (tracked): ' "$work/err")"

# ---- each call once

# counts NAME: "by fibers, passed through", of the process that runs
counts() {
	local pid
	pid=$(sed -n 's/^fiberize: ends\[\([0-9]*\)\]: running.*/\1/p' "$work/err")
	sed -n "s/^fiberize: ends\[$pid\]: $1 ([a-z ]*): \([0-9]*\) by fibers, \([0-9]*\) .*/\1 \2/p" \
		"$work/err"
}
for threads in fibers native; do
	if [ $threads = fibers ]; then
		run "$fiberize" --stats "$ends" naps
	else
		run "$fiberize" --stats --native-threads '*' "$ends" naps
	fi
	same "naps as $threads: ends well" 0 "$code"
	for case in 'usleep 2' 'nanosleep 1' 'clock_nanosleep 1' 'wait 1' 'waitpid 1' 'fork 2' 'read 1' \
		'system 1' 'popen 1' 'pclose 1' 'posix_spawn ' 'pipe2 ' 'dup2 ' 'fcntl ' 'wait4 ' \
		'open 2' 'close 2' 'fstat 2' 'getdents64 2' 'sched_getaffinity ' 'stat '; do
		wanted=${case#* }
		[ -z "$wanted" ] || { [ $threads = fibers ] && wanted="$wanted 0" || wanted="0 $wanted"; }
		same "$threads: ${case% *} is counted once" "$wanted" "$(counts "${case% *}")"
	done
done

# The child of clone has the memory of its parent.
run "$fiberize" --stats "$ends" lends
same 'a child in the memory of its parent: ends well' 0 "$code"
same 'clone is counted' '1 0' "$(counts clone)"
same 'what libc calls in the child is not counted' '' "$(counts fcntl)"

finish
