/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_unwinding.c - a fork in the middle of another thread's dlopen leaves the
 * child with a loader that says so; threads of the child can be cancelled and leave by pthread_exit all the same.
 */
#include "check.h"
#include "loader.h"

static void *exits(void *arg)
{
	pthread_exit(arg);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t shared;

static void *waits(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&mutex));
	pthread_cleanup_push((void (*)(void *))(void *)pthread_mutex_unlock, &mutex);
	for (;;)
		pthread_cond_wait(&shared, &mutex);
	pthread_cleanup_pop(1);
	return arg;
}

static void end_threads(int unused)
{
	pthread_t t;

	(void)unused;
	loader()->r_state = RT_ADD;
	t = start(exits, &t);
	CHECK(finish(t) == &t);
	t = start(waits, NULL);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
}

int main(void)
{
	pthread_condattr_t attr;

	CHECK(loader());
	CHECK_OK(pthread_condattr_init(&attr));
	CHECK_OK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_cond_init(&shared, &attr));
	/* libc has loaded what it needs to unwind. */
	CHECK(!finish(start(exits, NULL)));
	run_in_child(end_threads, 0);
	return success();
}
