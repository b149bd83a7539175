/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAMILIES_H
#define TESTS_FAMILIES_H

/*
 * tests/programs/families.h - a thousand threads, every tenth with an affinity of its own, that
 * do the same over and over, family by family.
 *
 * main calls run_families(), a family's function calls run(), and then checks the sums.
 */
#include "check.h"

#define THREADS 1000

/* Fewer where kernel threads would spin until the one with the lock has its turn. */
static int threads = THREADS;
static double seconds = 0.1;
static int stop;			/* what all may look at */
static int begun;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

/* What each did, summed up when all have ended. */
struct work {
	void (*step)(struct work *);
	uint64_t seed;
	long done, a, b;
	int id;
} works[THREADS];

UNUSED static int stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *body(void *arg)
{
	struct work *w = arg;

	/* All of them exist before the first begins. */
	CHECK_OK(pthread_mutex_lock(&ready_lock));
	if (++begun == threads)
		CHECK_OK(pthread_cond_broadcast(&ready));
	while (begun < threads)
		CHECK_OK(pthread_cond_wait(&ready, &ready_lock));
	CHECK_OK(pthread_mutex_unlock(&ready_lock));
	/* At least once: a barrier is for all of them, however late they come. */
	do {
		w->step(w);
		w->done++;
		/* Most let others at it, as programs do that wait for other things. */
		switch (random_next(&w->seed) % 16) {
		case 0:
			usleep((useconds_t)(random_next(&w->seed) % 2000));
			break;
		case 1 ... 8:
			sched_yield();
		}
	} while (!stopped());
	return NULL;
}

static long sum_done UNUSED, sum_a UNUSED, sum_b UNUSED;

static void wait_and_stop(void)
{
	CHECK_OK(pthread_mutex_lock(&ready_lock));
	while (begun < threads)
		CHECK_OK(pthread_cond_wait(&ready, &ready_lock));
	CHECK_OK(pthread_mutex_unlock(&ready_lock));
	usleep((useconds_t)(seconds * 1e6));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void run(void (*step)(struct work *), void (*release)(void))
{
	static pthread_t t[THREADS];

	stop = begun = 0;
	sum_done = sum_a = sum_b = 0;
	for (int i = 0; i < threads; i++) {
		works[i] = (struct work){ .step = step, .seed = (uint64_t)i + 1, .id = i };
		t[i] = start_as(i % 10 == 9, body, &works[i]);
	}
	wait_and_stop();
	if (release)
		release();
	for (int i = 0; i < threads; i++) {
		finish(t[i]);
		sum_done += works[i].done;
		sum_a += works[i].a;
		sum_b += works[i].b;
	}
	CHECK(sum_done > 0);
}

struct family {
	const char *name;
	void (*fn)(void);
};

/* PROGRAM [SECONDS [FAMILY]]: all of them, or this one, for so long (0.1) each. */
static int run_families(const struct family *families, size_t n, int argc, char **argv)
{
	if (argc > 1)
		seconds = atof(argv[1]);
	for (size_t i = 0; i < n; i++) {
		if (argc > 2 && strcmp(argv[2], families[i].name))
			continue;
		families[i].fn();
		puts(families[i].name);
		fflush(stdout);
	}
	return success();
}

#endif
