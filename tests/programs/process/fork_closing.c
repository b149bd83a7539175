/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_closing.c - a process is copied while calls go on with descriptors that have just been
 * closed: the child has nothing of these files.
 */
#include "sockets.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 150, READERS = 4 };

struct reader {
	struct event begun;
	int fd[2];
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	char c;

	event_post(&r->begun);
	while (read(r->fd[0], &c, 1) == 1 && c != 'x')
		continue;
	return arg;
}

static pid_t copy(int how)
{
	pid_t pid = how % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0);
	if (!pid) {
		/* It ends also if the test fails. */
		alarm(20);
		for (;;)
			pause();
	}
	return pid;
}

/* Natively the call keeps the file, and lets it go when it returns; the child has no part in that. */
static void closed_then_copied(int round)
{
	struct reader r[READERS];
	pthread_t t[READERS];
	pid_t pid;

	for (int i = 0; i < READERS; i++) {
		r[i] = (struct reader){ .begun = EVENT_INIT };
		tcp_pair(r[i].fd);
		t[i] = start(reads, &r[i]);
		event_wait(&r[i].begun, 1);
	}
	usleep((useconds_t)(round % 7) * 300);
	for (int i = 0; i < READERS; i++) {
		/* Some calls end while the process is copied, some go on. */
		if (i % 2)
			CHECK_INT(write(r[i].fd[1], "x", 1), 1);
		CHECK_OK(close(r[i].fd[0]));
	}
	pid = copy(round);
	for (int i = 0; i < READERS; i++) {
		struct pollfd p = { .fd = r[i].fd[1], .events = POLLIN };

		if (i % 2 == 0 && write(r[i].fd[1], "x", 1) < 0)
			CHECK(errno == EPIPE || errno == ECONNRESET);
		finish(t[i]);
		CHECK_INT(poll(&p, 1, 5000), 1);
		CHECK_OK(close(r[i].fd[1]));
	}
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static void many_rounds(int n)
{
	for (int i = 0; i < n; i++)
		closed_then_copied(i);
}

/* A child makes threads, and processes, too: one of a process that has made none yet, and one of this. */
static void in_child(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		many_rounds(ROUNDS / 5);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

int main(void)
{
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	in_child();
	many_rounds(ROUNDS);
	in_child();
	return success();
}
