/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_errno.c - errno is each thread's own over calls that block. */
#include "check.h"

#include <poll.h>
#include <sys/socket.h>

#define THREADS 32
#define ROUNDS 30

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ring[THREADS][2];

static void *body(void *arg)
{
	int id = (int)(intptr_t)arg;
	int mine = 1000 + id;
	char c;

	CHECK_INT(errno, 0);
	for (int i = 0; i < ROUNDS; i++) {
		errno = mine;
		CHECK_INT(write(ring[(id + 1) % THREADS][1], "x", 1), 1);
		CHECK_INT(read(ring[id][0], &c, 1), 1);
		CHECK_INT(errno, mine);
		pthread_mutex_lock(&lock);
		if (i % 8 == 0)
			sched_yield();
		pthread_mutex_unlock(&lock);
		CHECK_INT(errno, mine);
		if (i % 10 == id % 10)
			CHECK_OK(usleep(100));
		CHECK_INT(errno, mine);
		CHECK_OK(poll(NULL, 0, i % 10 == 5));
		CHECK_INT(errno, mine);
		/* A failure is seen by the one that failed. */
		CHECK_ERR(read(-1, &c, 1), EBADF);
		sched_yield();
		CHECK_INT(errno, EBADF);
	}
	/* The next user of this thread's memory must find 0. */
	errno = mine;
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ring[i]));
	for (int round = 0; round < 3; round++) {
		for (intptr_t i = 0; i < THREADS; i++)
			t[i] = start(body, (void *)i);
		for (int i = 0; i < THREADS; i++)
			finish(t[i]);
	}
	return success();
}
