/* SPDX-License-Identifier: MIT */
/*
 * tests/modules/thread_module.c - a library whose constructor and destructor make and join
 * threads, for tests/programs/thread/thread_loader.c.
 */
#include "check.h"

static __thread int value = 42;
static int made;

static void *life(void *arg)
{
	CHECK_INT(value++, 42);
	sched_yield();
	return arg;
}

static void make_threads(void)
{
	enum { THREADS = 3 };
	pthread_t t[THREADS];
	pthread_attr_t attr;

	CHECK_OK(pthread_attr_init(&attr));
	for (int i = 0; i < THREADS; i++) {
		/* Of another size each, so that few are made of what is left of others. */
		CHECK_OK(pthread_attr_setstacksize(&attr, (size_t)128 * 1024 << i));
		CHECK_OK(pthread_create(&t[i], &attr, life, NULL));
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(!finish(t[i]));
		made++;
	}
	CHECK_OK(pthread_attr_destroy(&attr));
}

__attribute__((constructor)) static void begins(void)
{
	make_threads();
}

__attribute__((destructor)) static void ends(void)
{
	make_threads();
}

int module_made(void);
int module_made(void)
{
	return made;
}
