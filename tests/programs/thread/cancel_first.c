/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_first.c [PROCESSES] - signals keep arriving while a process cancels a thread
 * for the first time, which is when libc prepares for cancellation.
 */
#include "check.h"

#include <sys/wait.h>

enum { BEFORE = 20, AFTER = 200 };

static _Atomic int handled, enough, over;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void *computes(void *arg)
{
	while (!over)
		continue;
	return arg;
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

/* One after the other, each when the one before has been handled. */
static void *signals(void *arg)
{
	pthread_t *target = arg;

	for (int last = 0; !enough; last++) {
		CHECK_OK(pthread_kill(*target, SIGUSR1));
		while (handled == last)
			sched_yield();
	}
	return NULL;
}

static void await(int count)
{
	while (handled < count)
		usleep(100);
}

static void process(int way)
{
	struct sigaction sa = { .sa_handler = count };
	pthread_t computing, signalling, victim;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	computing = start(computes, NULL);
	signalling = start(signals, &computing);
	victim = start_as(way % 2, sleeps, NULL);
	await(BEFORE);
	CHECK_OK(pthread_cancel(victim));
	CHECK(finish(victim) == PTHREAD_CANCELED);
	await(handled + AFTER);
	enough = 1;
	finish(signalling);
	over = 1;
	finish(computing);
	_exit(0);
}

int main(int argc, char **argv)
{
	const int processes = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid)
			process(i);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
	}
	return success();
}
