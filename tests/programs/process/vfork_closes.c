/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/vfork_closes.c - a thread is in vfork for long, and others close more descriptors with which
 * calls wait than the program may have: each of these calls keeps its file.
 */
#include "sockets.h"

#include <sched.h>
#include <sys/wait.h>

enum { LIMIT = 256, CLOSES = 2 * LIMIT };

static int goes_on[2];
static struct event begun;

static void *makes(void *arg)
{
	pid_t pid;
	char c;

	/* The kernel thread is this thread's alone from here on. */
	CHECK_OK(unshare(CLONE_FS));
	event_post(&begun);
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		close(goes_on[1]);
		_exit(read(goes_on[0], &c, 1) == 0 ? 0 : 1);
	}
	CHECK_INT(waitpid(pid, (int *)arg, 0), pid);
	return arg;
}

static void closes(void)
{
	struct byte_receiver r;
	pthread_t t;
	int fd[2];

	make_pair(SOCKET, fd);
	t = start_byte_receiver(&r, fd[0]);
	CHECK_OK(close(fd[0]));
	CHECK_INT(write(fd[1], "x", 1), 1);
	finish(t);
	CHECK_OK(close(fd[1]));
}

int main(void)
{
	int status = -1;
	pthread_t t;

	CHECK_OK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ LIMIT, LIMIT }));
	CHECK_OK(pipe(goes_on));
	begun = (struct event)EVENT_INIT;
	t = start(makes, &status);
	event_wait(&begun, 1);
	usleep(20 * 1000);
	for (int i = 0; i < CLOSES; i++)
		closes();
	CHECK_OK(close(goes_on[1]));
	finish(t);
	CHECK_INT(status, 0);
	return success();
}
