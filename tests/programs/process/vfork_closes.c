/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/vfork_closes.c - a thread is in vfork for long, and others close more descriptors with which
 * calls wait than the program may have: each of these calls keeps its file.
 */
#include "sockets.h"

#include <sched.h>
#include <sys/wait.h>

enum { LIMIT = 256, AT_ONCE = 16, ROUNDS = 2 * LIMIT / AT_ONCE };

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
	static struct byte_receiver r[AT_ONCE];
	pthread_t threads[AT_ONCE];
	int fd[AT_ONCE][2];

	for (int i = 0; i < AT_ONCE; i++) {
		make_pair(SOCKET, fd[i]);
		r[i] = (struct byte_receiver){ .begun = EVENT_INIT, .fd = fd[i][0] };
		threads[i] = start(receives_byte, &r[i]);
		event_wait(&r[i].begun, 1);
	}
	/* Of the last to begin: the others have had longer. */
	await_sleep(r[AT_ONCE - 1].tid);
	for (int i = 0; i < AT_ONCE; i++) {
		CHECK_OK(close(fd[i][0]));
		CHECK_INT(write(fd[i][1], "x", 1), 1);
		finish(threads[i]);
		CHECK_OK(close(fd[i][1]));
	}
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
	for (int i = 0; i < ROUNDS; i++)
		closes();
	CHECK_OK(close(goes_on[1]));
	finish(t);
	CHECK_INT(status, 0);
	return success();
}
