/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/clone_closing.c - a process that will execute a program begins, and the one that makes it has as
 * many descriptors as it may: a call whose descriptor is closed meanwhile keeps its file.
 */
#include "sockets.h"

#include <sched.h>
#include <sys/wait.h>

enum { LIMIT = 256, STACK = 64 * 1024 };

static struct event begun;
static _Alignas(16) char stack[STACK];

static int child(void *arg)
{
	event_post(&begun);
	usleep(20 * 1000);
	return *(int *)arg;
}

static void *makes(void *arg)
{
	int status;
	pid_t pid = clone(child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, arg);

	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), *(int *)arg);
	return arg;
}

int main(void)
{
	struct byte_receiver r;
	int fds[LIMIT], code = 3, n, end[2];
	pthread_t t, maker;

	limit_descriptors(LIMIT);
	make_pair(SOCKET, end);
	t = start_byte_receiver(&r, end[0]);
	begun = (struct event)EVENT_INIT;
	n = fill_descriptors(fds);
	maker = start(makes, &code);
	event_wait(&begun, 1);
	CHECK_OK(close(end[0]));
	CHECK_INT(write(end[1], "x", 1), 1);
	finish(t);
	finish(maker);
	for (int i = 0; i < n; i++)
		CHECK_OK(close(fds[i]));
	return success();
}
