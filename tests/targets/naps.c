/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/naps.c - threads that wait briefly, or yield, at the same place again and again, and use the same
 * stack for something else meanwhile.  No stack of theirs ever has two of usleep, descends and yields.
 *
 *	naps	prints "ready" once each thread is in its function; goes on until killed
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 40, YIELDING = 8, DEPTH = 200, TIMES = 10 };	/* DEPTH: fewer frames than bt shows at most */

static pthread_barrier_t begun;

__attribute__((noinline)) static int descends(int depth)
{
	volatile char used[200];

	used[depth % sizeof(used)] = (char)depth;
	return depth ? descends(depth - 1) + used[depth % sizeof(used)] : 0;
}

__attribute__((noinline)) static int yields(int depth)
{
	volatile char used[300];

	used[depth % sizeof(used)] = (char)depth;
	return depth ? yields(depth - 1) + used[depth % sizeof(used)] : sched_yield();
}

static void *naps(void *arg)
{
	pthread_barrier_wait(&begun);
	for (;;) {
		usleep(100);
		for (int i = 0; i < TIMES; i++)
			descends(DEPTH);
	}
	return arg;
}

static void *naps_never(void *arg)
{
	pthread_barrier_wait(&begun);
	for (;;) {
		yields(DEPTH);
		for (int i = 0; i < TIMES; i++)
			descends(DEPTH);
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&begun, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, i < YIELDING ? naps_never : naps, NULL) != 0)
			exit(1);
	pthread_barrier_wait(&begun);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
