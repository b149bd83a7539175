/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_THREADS_TIME_H
#define FZ_BENCH_THREADS_TIME_H

/*
 * scripts/bench/threads_time.h - measures a case of threads.c: a loop in one thread, or several
 * threads together.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scripts/bench/number.h"

static double seconds = 0.2;
static atomic_int stop;

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "threads: %s: %s\n", what, strerror(err));
	exit(1);
}

/* Call body(batch), which does `batch` operations, again and again. Returns nanoseconds per operation. */
static double loop(void (*body)(unsigned), unsigned batch)
{
	uint64_t start, end, until, n = 0;

	body(batch);
	start = now_ns();
	until = start + (uint64_t)(seconds * 1e9);
	do {
		body(batch);
		n += batch;
		end = now_ns();
	} while (end < until);
	return (double)(end - start) / (double)n;
}

/* Threads count their operations, each in a cache line of its own. */
struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t operations;
} __attribute__((aligned(128)));

/* Run `count` threads together. Returns elapsed nanoseconds per operation, of the operations of all. */
static double together(void *(*run)(void *), unsigned count)
{
	struct worker *workers = aligned_alloc(128, count * sizeof(*workers));
	struct timespec ts = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
	uint64_t start, sum = 0;
	double elapsed;

	if (!workers)
		must(ENOMEM, "aligned_alloc");
	atomic_store(&stop, 0);
	start = now_ns();
	for (unsigned i = 0; i < count; i++) {
		workers[i].index = i;
		workers[i].operations = 0;
		must(pthread_create(&workers[i].thread, NULL, run, &workers[i]),
		     "pthread_create");
	}
	nanosleep(&ts, NULL);
	atomic_store(&stop, 1);
	for (unsigned i = 0; i < count; i++) {
		must(pthread_join(workers[i].thread, NULL), "pthread_join");
		sum += workers[i].operations;
	}
	elapsed = (double)(now_ns() - start);
	free(workers);
	return elapsed / (double)(sum ? sum : 1);
}

#endif
