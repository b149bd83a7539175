/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_cputime_sum.c - the CPU times of all threads are together not more than the process's, also if
 * the program asks for those of some threads at once, and of others after they have taken turns with them.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/wait.h>

enum { PAIRS = 4, TURNS = 150 };

static _Atomic int ready;
static _Atomic bool over;

/* Some 0.3 ms, on the machine where this was written; how long it takes does not matter. */
static void compute(void)
{
	for (volatile int i = 0; i < 300000; i++)
		continue;
}

static void *takes_turns(void *arg)
{
	const bool asks = arg;

	if (asks)
		CHECK(now(CLOCK_THREAD_CPUTIME_ID) >= 0);
	for (int i = 0; i < TURNS; i++) {
		compute();
		sched_yield();
	}
	ready++;
	while (!over)
		usleep(1000);
	return arg;
}

static void compare(void)
{
	const long long begin = now(CLOCK_PROCESS_CPUTIME_ID), own = now(CLOCK_THREAD_CPUTIME_ID);
	pthread_t t[2 * PAIRS];
	long long sum = 0, process;

	for (int i = 0; i < 2 * PAIRS; i++)
		t[i] = start(takes_turns, (void *)(intptr_t)(i % 2));
	while (ready < 2 * PAIRS)
		usleep(1000);
	for (int i = 0; i < 2 * PAIRS; i++) {
		clockid_t clock;

		CHECK_OK(pthread_getcpuclockid(t[i], &clock));
		sum += now(clock);
	}
	sum += now(CLOCK_THREAD_CPUTIME_ID) - own;
	process = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
	if (sum > process)
		fail(__FILE__, __LINE__, "threads: %lld us, process: %lld us\n", sum / 1000, process / 1000);
	over = true;
	for (int i = 0; i < 2 * PAIRS; i++)
		finish(t[i]);
}

/* thread_cputime_sum [ROUNDS] */
int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 6;

	/* In a process each, in which no time has been asked for yet. */
	for (int i = 0; i < rounds; i++) {
		const pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid) {
			compare();
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
	}
	return success();
}
