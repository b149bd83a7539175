/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/crowd.c - very many threads, which all wait on one condition variable.
 *
 *	crowd COUNT [MAKERS]	prints "ready" once all COUNT threads wait, and goes on until killed.
 *				MAKERS others make, all the time, threads that end at once, with
 *				stacks of several sizes, so that memory is given back and used again
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, all_wait = PTHREAD_COND_INITIALIZER;
static long waiting, count;

static void *waits(void *arg)
{
	pthread_mutex_lock(&mutex);
	if (++waiting == count)
		pthread_cond_signal(&all_wait);
	for (;;)
		pthread_cond_wait(&never, &mutex);
	return arg;
}

static void *ends(void *arg)
{
	return arg;
}

static void *makes(void *arg)
{
	enum { AT_ONCE = 64 };

	for (size_t turn = 0;; turn++) {
		pthread_t threads[AT_ONCE];
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, (size_t)(64 << turn % 7) << 10);
		for (int i = 0; i < AT_ONCE; i++)
			if (pthread_create(&threads[i], &attr, ends, NULL) != 0)
				abort();
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
		pthread_attr_destroy(&attr);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const long makers = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	pthread_attr_t attr;
	pthread_t thread;

	count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	/* A guard may be a mapping of its own, and a process may have 65,530 of these. */
	pthread_attr_setguardsize(&attr, 0);
	for (long i = 0; i < count; i++) {
		int err = pthread_create(&thread, &attr, waits, NULL);

		if (err) {
			fprintf(stderr, "crowd: thread %ld: %s\n", i, strerror(err));
			return 1;
		}
		if (i < makers && pthread_create(&thread, NULL, makes, NULL) != 0)
			return 1;
	}
	pthread_mutex_lock(&mutex);
	while (waiting < count)
		pthread_cond_wait(&all_wait, &mutex);
	pthread_mutex_unlock(&mutex);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
