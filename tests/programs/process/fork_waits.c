/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_waits.c - fork waits for a lock of libc's streams: a descriptor that is closed meanwhile
 * is let go when the call that waits with it ends, not when fork goes on.  With the limit on descriptors that is usual, and
 * with more.
 */
#include "sockets.h"

#include <poll.h>
#include <sys/wait.h>

static const useconds_t moment = 50 * 1000;
static FILE *locked;
static int end[2];
static struct event begun;

static void *receives(void *arg)
{
	char c;

	event_post(&begun);
	CHECK_ERR(recv(end[0], &c, 1, 0), EAGAIN);
	return arg;
}

/* Holds the lock of the list of streams while it waits for that of one. */
static void *flushes_all(void *arg)
{
	CHECK_OK(fflush(NULL));
	return arg;
}

static void *forks(void *arg)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	return arg;
}

static void closes(rlim_t descriptors)
{
	struct pollfd p;
	pthread_t t[3];

	limit_descriptors(descriptors);
	locked = tmpfile();
	CHECK(locked);
	make_pair(SOCKET, end);
	set_timeout(end[0], SO_RCVTIMEO, 400);
	begun = (struct event)EVENT_INIT;
	t[0] = start(receives, NULL);
	event_wait(&begun, 1);
	usleep(moment);
	flockfile(locked);
	t[1] = start(flushes_all, NULL);
	usleep(moment);
	t[2] = start(forks, NULL);
	usleep(moment);
	CHECK_OK(close(end[0]));
	p = (struct pollfd){ .fd = end[1], .events = POLLIN };
	CHECK_INT(poll(&p, 1, 20 * 1000), 1);
	funlockfile(locked);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	CHECK_OK(close(end[1]));
	CHECK_OK(fclose(locked));
}

int main(void)
{
	closes(1024);
	closes(20000);
	return success();
}
