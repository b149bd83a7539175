/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_busy.c - threads that compute for a moment and sleep for a moment, many times, then more
 * threads than processors that compute for long and call something now and then: what is known of those that ran
 * before must not count for who runs now.
 */
#include "check.h"

enum { BRIEF = 3, BUSY = 8, NAPS = 3000, CALLS = 12 };

static volatile unsigned long sums[BRIEF + BUSY];

static void compute(int i, int n)
{
	while (n--)
		sums[i] += (unsigned long)n;
}

static void *be_brief(void *arg)
{
	for (int n = 0; n < NAPS; n++) {
		compute((int)(intptr_t)arg, 30000);
		usleep(50);
	}
	return arg;
}

static void *be_busy(void *arg)
{
	for (int n = 0; n < CALLS; n++) {
		compute((int)(intptr_t)arg, 4000000);
		usleep(1);
	}
	return arg;
}

static void run(void *(*fn)(void *), int first, int n)
{
	pthread_t t[BUSY];

	for (intptr_t i = 0; i < n; i++)
		CHECK_OK(pthread_create(&t[i], NULL, fn, (void *)(first + i)));
	for (intptr_t i = 0; i < n; i++)
		CHECK(finish(t[i]) == (void *)(first + i));
}

int main(void)
{
	run(be_brief, 0, BRIEF);
	run(be_busy, BRIEF, BUSY);
	for (int i = 0; i < BRIEF; i++)
		CHECK(sums[i] == NAPS * (30000UL * 29999 / 2));
	for (int i = BRIEF; i < BRIEF + BUSY; i++)
		CHECK(sums[i] == CALLS * (4000000UL * 3999999 / 2));
	return success();
}
