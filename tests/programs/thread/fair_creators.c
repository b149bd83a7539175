/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/fair_creators.c - a thread makes many others that use the CPU, or call and never
 * wait: it has made them, and has slept, before the process has used much CPU time.
 */
#include "check.h"

#include <poll.h>

enum { SPINNING = 120, CALLING = 100, NAPS = 5, NAP_US = 5000 };

static _Atomic int begun, stop;

static void *spins(void *arg)
{
	begun++;
	while (!stop)
		continue;
	return arg;
}

static void *stops_when_all_spin(void *arg)
{
	while (begun < SPINNING)
		usleep(1000);
	stop = 1;
	return arg;
}

static void *calls(void *arg)
{
	struct pollfd nothing = { .fd = *(int *)arg, .events = POLLIN };

	while (!stop)
		CHECK_INT(poll(&nothing, 1, 0), 0);
	return arg;
}

static void making(void *(*fn)(void *), void *arg, pthread_t *t, int n)
{
	stop = begun = 0;
	for (int i = 0; i < n; i++)
		t[i] = start(fn, arg);
}

int main(void)
{
	/* Of CPU time: on each CPU a thread may spin while the one that makes them does not run. */
	const long long patience = sysconf(_SC_NPROCESSORS_ONLN) * 6000 * MS;
	static pthread_t t[SPINNING];
	pthread_t last;
	long long begin = now(CLOCK_PROCESS_CPUTIME_ID);
	int pipe_of[2];

	making(spins, NULL, t, SPINNING);
	last = start(stops_when_all_spin, NULL);
	for (int i = 0; i < SPINNING; i++)
		finish(t[i]);
	finish(last);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - begin < patience);

	CHECK_OK(pipe(pipe_of));
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	making(calls, &pipe_of[0], t, CALLING);
	for (int i = 0; i < NAPS; i++)
		usleep(NAP_US);
	stop = 1;
	for (int i = 0; i < CALLING; i++)
		finish(t[i]);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - begin < patience);
	return success();
}
