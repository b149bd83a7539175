/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/sync/barrier.h"
#include "runtime_setup.h"

_Static_assert(sizeof(struct fz_barrier) <= sizeof(pthread_barrier_t), "fits");

/* What pthread_barrier_init leaves is what fz_barrier_wait expects. */
Test(barrier, words_are_those_of_libc)
{
	pthread_barrier_t barrier;
	struct fz_barrier *b = (struct fz_barrier *)&barrier;
	pthread_barrierattr_t attr;

	setup_layout();
	__builtin_memset(&barrier, 0xa5, sizeof(barrier));
	cr_assert_eq(pthread_barrier_init(&barrier, NULL, 5), 0);
	cr_assert_eq(b->count, 5);
	cr_assert_eq(b->shared, 0);
	cr_assert_eq(GET(b->both), 0);
	cr_assert_eq(GET(b->left), 0);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	cr_assert_eq(pthread_barrier_init(&barrier, &attr, 5), 0);
	cr_assert_neq(b->shared, 0);
}

static struct fz_barrier barrier;
static _Atomic unsigned lasts, rounds_seen;

static void *pass(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 100; i++) {
		if (fz_barrier_wait(&barrier))
			COUNT(lasts);
		if (GET(barrier.round) < i + 1)
			COUNT(rounds_seen);
	}
	return NULL;
}

static void mixed(unsigned processors)
{
	struct fz_fiber *f[6];
	pthread_t t[2];

	setup_start(processors);
	barrier.count = 8;
	for (int i = 0; i < 6; i++)
		f[i] = spawn(pass, NULL);
	for (int i = 0; i < 2; i++)
		t[i] = native(pass, NULL);
	for (int i = 0; i < 6; i++)
		join(f[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(GET(lasts), 100);
	cr_assert_eq(GET(rounds_seen), 0);
	cr_assert_eq(GET(barrier.arrived), 0);
	cr_assert_eq(GET(barrier.left), 100 * 8 * 2);
	fz_barrier_destroy(&barrier);
}

Test(barrier, fibers_and_native_threads_on_one)
{
	mixed(1);
}

Test(barrier, fibers_and_native_threads_on_two)
{
	mixed(2);
}
