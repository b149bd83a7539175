/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_pdeathsig.c - a child that asked for a signal at its parent's end
 * (PR_SET_PDEATHSIG) gets none while the thread that made it lives, whatever other threads do:
 * start and end, use mutexes with priority inheritance, block by the dozen.
 */
#include "check.h"

#include <sys/prctl.h>
#include <sys/wait.h>

enum { ROUNDS = 100, THREADS = 4, BLOCKED = 20, CHILDREN = 3 };

static struct event made = EVENT_INIT, end = EVENT_INIT;
static pid_t children[CHILDREN];
static pthread_t creators[CHILDREN];

static void *makes(void *arg)
{
	pid_t *child = arg;

	*child = fork();
	CHECK(*child >= 0);
	if (*child == 0) {
		CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		for (;;)
			pause();
	}
	event_post(&made);
	event_wait(&end, 1);
	return arg;
}

static void *inherits(void *arg)
{
	use_inheriting_mutex();
	return arg;
}

static void *sleeps(void *arg)
{
	usleep(100);
	return arg;
}

static int ends[2];

static void *reads(void *arg)
{
	char byte;

	CHECK_INT((int)read_raw(ends[0], &byte, 1), 1);
	return arg;
}

/* So that there are many kernel threads, which others use after that. */
static void blocked(void)
{
	pthread_t threads[BLOCKED];
	char bytes[BLOCKED] = "";

	CHECK_OK(pipe(ends));
	for (int i = 0; i < BLOCKED; i++)
		threads[i] = start(reads, NULL);
	usleep(100000);
	for (int i = 0; i < CHILDREN; i++)
		creators[i] = start(makes, &children[i]);
	event_wait(&made, CHILDREN);
	CHECK_INT((int)write(ends[1], bytes, BLOCKED), BLOCKED);
	for (int i = 0; i < BLOCKED; i++)
		finish(threads[i]);
}

int main(void)
{
	int status;

	blocked();
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t threads[THREADS];

		for (int n = 0; n < THREADS; n++)
			threads[n] = start(n % 2 ? sleeps : inherits, NULL);
		for (int n = 0; n < THREADS; n++)
			finish(threads[n]);
	}
	/* Kernel threads that nobody needs may end, one day. */
	usleep(3000000);
	for (int i = 0; i < CHILDREN; i++) {
		CHECK_INT(waitpid(children[i], &status, WNOHANG), 0);
		CHECK_OK(kill(children[i], SIGTERM));
		CHECK_INT(waitpid(children[i], &status, 0), children[i]);
		CHECK_INT(status, SIGTERM);
	}
	event_post(&end);
	for (int i = 0; i < CHILDREN; i++)
		finish(creators[i]);
	return success();
}
