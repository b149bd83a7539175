/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/clone_files.c - a process that shares its parent's descriptors, but not its memory: it closes
 * none of those with which the parent's threads wait, and what it closes itself is closed in both.  Its threads leave no
 * descriptor behind.
 */
#include "sockets.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { WAITERS = 4 };

static int pair[WAITERS][2], other;
static struct event begun;

static void *receives(void *arg)
{
	const int *fd = arg;
	char c;

	event_post(&begun);
	CHECK_INT(recv(fd[0], &c, 1, 0), 1);
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static int child(void *arg)
{
	(void)arg;
	finish(start(nothing, NULL));
	return close(other) ? 1 : 7;
}

static pid_t copy(int how)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	if (how % 3 == 1)
		return clone(child, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | (how % 3 ? CLONE_VFORK : 0) | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid)
		_exit(child(NULL));
	return pid;
}

static void shares(int how)
{
	pthread_t t[WAITERS];
	int status;
	pid_t pid;

	begun = (struct event)EVENT_INIT;
	other = open("/dev/null", O_RDONLY);
	CHECK(other >= 0);
	for (int i = 0; i < WAITERS; i++) {
		make_pair(SOCKET, pair[i]);
		t[i] = start(receives, pair[i]);
	}
	event_wait(&begun, WAITERS);
	usleep(50 * 1000);
	/* Where the call has the file still, it must not lose it. */
	for (int i = 0; i < WAITERS / 2; i++)
		CHECK_OK(close(pair[i][0]));
	pid = copy(how);
	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 7);
	CHECK_ERR(close(other), EBADF);
	for (int i = 0; i < WAITERS; i++) {
		CHECK_INT(write(pair[i][1], "x", 1), 1);
		finish(t[i]);
		CHECK_OK(close(pair[i][1]));
		if (i >= WAITERS / 2)
			CHECK_OK(close(pair[i][0]));
	}
}

int main(void)
{
	int before;

	shares(0);
	before = open_files();
	for (int i = 0; i < 9; i++)
		shares(i);
	CHECK_INT(open_files(), before);
	return success();
}
