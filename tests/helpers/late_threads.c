/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/late_threads.c - a library to preload: every new thread begins late.
 *
 * Sleeps for up to 20 ms before its start routine, less in programs that make
 * hundreds, so that who assumes that a new thread comes first, or is ready after a
 * moment, is wrong.  Alone it shows what is wrong with the program; in front of
 * libfiberize.so it is part of the program, and shows what is wrong with that.
 *
 * Not seen are the threads of C11's thrd_create, and those that libc makes by itself.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_US 20000
#define MANY 100	/* from there on, the n-th sleeps at most MANY/n of that */

typedef void *routine(void *);
typedef int creator(pthread_t *, const pthread_attr_t *, routine *, void *);

/*
 * What a thread is told on its way.  Not allocated: the allocator may be the program's
 * own, which counts.  One that never began keeps its place.
 */
static struct birth {
	_Atomic int taken;
	routine *start;
	void *arg;
	useconds_t late;
} births[65536];

static _Atomic unsigned int made;
static uint64_t seed;
static creator *next_create;

__attribute__((constructor)) static void prepare(void)
{
	struct timespec ts;

	/* The newest version there is, which is what programs are linked with. */
	next_create = (creator *)dlsym(RTLD_NEXT, "pthread_create");
	clock_gettime(CLOCK_MONOTONIC, &ts);
	seed = (uint64_t)ts.tv_nsec ^ (uint64_t)getpid() << 32;
}

/* splitmix64, of which every number is as random as the next. */
static uint64_t scatter(uint64_t x)
{
	x += 0x9E3779B97F4A7C15ULL;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
	x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
	return x ^ x >> 31;
}

static void *begin_late(void *arg)
{
	struct birth *birth = arg;
	routine *start = birth->start;
	void *start_arg = birth->arg;
	useconds_t late = birth->late;
	int state, error = errno;

	atomic_store(&birth->taken, 0);
	/* Who is cancelled meanwhile sees it where it would have without us. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	usleep(late);
	pthread_setcancelstate(state, NULL);
	errno = error;
	return start(start_arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, routine *start, void *arg)
{
	unsigned int n = atomic_fetch_add(&made, 1);
	struct birth *birth = &births[n % (sizeof(births) / sizeof(births[0]))];
	unsigned int longest = n < MANY ? LONGEST_US : (unsigned int)((uint64_t)LONGEST_US * MANY / n);

	/* Before libraries are initialised. */
	if (!next_create)
		prepare();
	if (atomic_exchange(&birth->taken, 1))
		return next_create(thread, attr, start, arg);
	birth->start = start;
	birth->arg = arg;
	birth->late = (useconds_t)(scatter(seed + n) % (longest + 1));
	/* The last call, so that its caller is ours: to some threads that makes a difference. */
	return next_create(thread, attr, begin_late, birth);
}
