/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/base/lock.h"
#include "runtime_setup.h"

Test(lock, try_succeeds_only_when_free)
{
	struct fz_lock l = { 0 };

	cr_assert(fz_lock_try(&l));
	cr_assert(!fz_lock_try(&l));
	fz_lock_release(&l);
	cr_assert_eq(GET(l.word), 0);
	fz_lock_acquire(&l);
	cr_assert(!fz_lock_try(&l));
	fz_lock_release(&l);
	cr_assert(fz_lock_try(&l));
}

enum { THREADS = 4, ROUNDS = 200000 };

static struct fz_lock lock;
static unsigned long plain_count;
static _Atomic int inside;
static _Atomic unsigned violations;

static void *increment(void *arg)
{
	bool tries = (uintptr_t)arg & 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!tries || !fz_lock_try(&lock))
			fz_lock_acquire(&lock);
		if (atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed))
			COUNT(violations);
		plain_count++;
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		fz_lock_release(&lock);
	}
	return NULL;
}

Test(lock, mutual_exclusion)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = native(increment, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(GET(violations), 0);
	cr_assert_eq(plain_count, (unsigned long)THREADS * ROUNDS);
	cr_assert_eq(GET(lock.word), 0);
}

static _Atomic unsigned entered;

static void *wait_for_it(void *arg)
{
	fz_lock_acquire(&lock);
	COUNT(entered);
	fz_lock_release(&lock);
	return arg;
}

/* Sleepers on the futex are woken, one after the other, to the last. */
Test(lock, all_waiters_get_it)
{
	pthread_t threads[20];

	fz_lock_acquire(&lock);
	for (int i = 0; i < 20; i++)
		threads[i] = native(wait_for_it, NULL);
	cr_assert(EVENTUALLY(GET(lock.word) == 2));
	cr_assert_eq(GET(entered), 0);
	fz_lock_release(&lock);
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(GET(entered), 20);
}
