/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/sync/mutex.h"
#include "runtime_setup.h"

_Static_assert(sizeof(struct fz_mutex) <= sizeof(pthread_mutex_t), "fits");

static int my_tid(void)
{
	return atomic_load(fz_tcb_tid(fz_tcb_get()));
}

/* glibc's initialisers and ours mean the same. */
Test(mutex, words_are_those_of_libc)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	pthread_mutexattr_t shared;
	pthread_mutex_t libc;

	setup_layout();
	cr_assert_eq(fz_mutex_lock((struct fz_mutex *)&m, FZ_FOREVER), 0);
	cr_assert_eq(m.__data.__lock, 1);
	cr_assert_eq(m.__data.__owner, my_tid());
	cr_assert_eq(m.__data.__nusers, 1);
	cr_assert_eq(m.__data.__count, 1);
	cr_assert_eq(pthread_mutex_destroy(&m), EBUSY);
	cr_assert_eq(fz_mutex_unlock((struct fz_mutex *)&m), 0);
	cr_assert_eq(m.__data.__lock, 0);
	cr_assert_eq(m.__data.__owner, 0);
	cr_assert_eq(m.__data.__nusers, 0);
	cr_assert_eq(pthread_mutex_destroy(&m), 0);

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&libc, &shared);
	cr_assert(!fz_mutex_is_ours((struct fz_mutex *)&libc));
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_PRIVATE);
	pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&libc, &shared);
	cr_assert(!fz_mutex_is_ours((struct fz_mutex *)&libc));
	pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_STALLED);
	pthread_mutexattr_setprotocol(&shared, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&libc, &shared);
	cr_assert(!fz_mutex_is_ours((struct fz_mutex *)&libc));
	pthread_mutexattr_setprotocol(&shared, PTHREAD_PRIO_NONE);
	for (int type = FZ_MUTEX_NORMAL; type <= FZ_MUTEX_ADAPTIVE; type++) {
		pthread_mutexattr_settype(&shared, type);
		pthread_mutex_init(&libc, &shared);
		cr_assert(fz_mutex_is_ours((struct fz_mutex *)&libc));
		cr_assert_eq(((struct fz_mutex *)&libc)->kind & 0x7f, type);
	}
}

/* Others than the holder, for the cases below. */
struct attempt {
	struct fz_mutex *m;
	fz_nsec timeout;		/* 0: try */
	int locked, unlocked;
};

static void *attempt(void *arg)
{
	struct attempt *a = arg;

	a->unlocked = fz_mutex_unlock(a->m);
	a->locked = a->timeout ? fz_mutex_lock(a->m, now_ns() + a->timeout) :
				 fz_mutex_trylock(a->m);
	if (a->locked == 0)
		fz_mutex_unlock(a->m);
	return NULL;
}

static struct attempt by_another(struct fz_mutex *m, fz_nsec timeout)
{
	struct attempt a = { .m = m, .timeout = timeout };
	pthread_t t = native(attempt, &a);

	pthread_join(t, NULL);
	return a;
}

Test(mutex, recursive)
{
	struct fz_mutex m = { .kind = FZ_MUTEX_RECURSIVE };

	setup_layout();
	for (int i = 0; i < 100; i++)
		cr_assert_eq(i % 2 ? fz_mutex_lock(&m, FZ_FOREVER) : fz_mutex_trylock(&m), 0);
	cr_assert_eq(m.count, 100);
	cr_assert_eq(m.users, 1);
	cr_assert_eq(by_another(&m, 0).locked, -EBUSY);
	cr_assert_eq(by_another(&m, 0).unlocked, -EPERM);
	cr_assert_eq(m.count, 100);
	for (int i = 0; i < 99; i++)
		cr_assert_eq(fz_mutex_unlock(&m), 0);
	cr_assert_eq(by_another(&m, FZ_MSEC).locked, -ETIMEDOUT);
	cr_assert_eq(fz_mutex_unlock(&m), 0);
	cr_assert_eq(fz_mutex_unlock(&m), -EPERM);
	cr_assert_eq(by_another(&m, FZ_MSEC).locked, 0);
	/* At the limit of the count it says so, and nothing changes. */
	cr_assert_eq(fz_mutex_lock(&m, FZ_FOREVER), 0);
	m.count = UINT32_MAX;
	cr_assert_eq(fz_mutex_lock(&m, FZ_FOREVER), -EAGAIN);
	cr_assert_eq(fz_mutex_trylock(&m), -EAGAIN);
	cr_assert_eq(m.count, UINT32_MAX);
}

Test(mutex, error_checking)
{
	struct fz_mutex m = { .kind = FZ_MUTEX_ERRORCHECK };

	setup_layout();
	cr_assert_eq(fz_mutex_unlock(&m), -EPERM);
	cr_assert_eq(fz_mutex_lock(&m, FZ_FOREVER), 0);
	cr_assert_eq(fz_mutex_lock(&m, FZ_FOREVER), -EDEADLK);
	cr_assert_eq(fz_mutex_lock(&m, 1), -EDEADLK);
	cr_assert_eq(fz_mutex_trylock(&m), -EBUSY);
	cr_assert_eq(by_another(&m, 0).unlocked, -EPERM);
	cr_assert_eq(fz_mutex_unlock(&m), 0);
	cr_assert_eq(fz_mutex_unlock(&m), -EPERM);
	cr_assert_eq(m.users, 0);
}

Test(mutex, normal_and_adaptive_deadlock_until_the_deadline)
{
	const int kinds[] = { FZ_MUTEX_NORMAL, FZ_MUTEX_ADAPTIVE };

	setup_layout();
	for (int i = 0; i < 2; i++) {
		struct fz_mutex m = { .kind = kinds[i] };
		fz_nsec start;

		cr_assert_eq(fz_mutex_trylock(&m), 0);
		cr_assert_eq(fz_mutex_trylock(&m), -EBUSY);
		start = now_ns();
		cr_assert_eq(fz_mutex_lock(&m, start + 3 * FZ_MSEC), -ETIMEDOUT);
		cr_assert_geq(now_ns() - start, 3 * FZ_MSEC);
		cr_assert_eq(m.users, 1);
		cr_assert_eq(fz_mutex_unlock(&m), 0);
		cr_assert_eq(fz_mutex_lock(&m, 1), 0, "free: the deadline does not matter");
		cr_assert_eq(fz_mutex_unlock(&m), 0);
	}
}

enum { WORKERS = 6, ROUNDS = 30000 };

static struct fz_mutex mutex;
static unsigned long plain_count;
static _Atomic int inside;
static _Atomic unsigned violations, timeouts;

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t r = random_next(&seed);
		bool again = (mutex.kind & 0x7f) == FZ_MUTEX_RECURSIVE && r % 3 == 0;

		if (r % 8 == 0) {
			if (fz_mutex_trylock(&mutex))
				fz_mutex_lock(&mutex, FZ_FOREVER);
		} else if (r % 8 == 1) {
			while (fz_mutex_lock(&mutex, now_ns() + 20 * FZ_USEC))
				COUNT(timeouts);
		} else {
			fz_mutex_lock(&mutex, FZ_FOREVER);
		}
		if (again)
			fz_mutex_lock(&mutex, FZ_FOREVER);
		if (atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed))
			COUNT(violations);
		plain_count++;
		if (r % 512 == 5)
			yield_fiber();
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		if (again)
			fz_mutex_unlock(&mutex);
		fz_mutex_unlock(&mutex);
	}
	return NULL;
}

static void stress(int kind, unsigned processors, unsigned natives)
{
	struct fz_fiber *f[WORKERS];
	pthread_t threads[WORKERS];

	if (processors)
		setup_start(processors);
	else
		setup_layout();
	mutex.kind = kind;
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (i < natives)
			threads[i] = native(work, (void *)i);
		else
			f[i] = spawn(work, (void *)i);
	for (unsigned i = 0; i < WORKERS; i++)
		if (i < natives)
			pthread_join(threads[i], NULL);
		else
			join(f[i]);
	cr_assert_eq(GET(violations), 0);
	cr_assert_eq(plain_count, (unsigned long)WORKERS * ROUNDS);
	cr_assert_eq(GET(mutex.lock), 0);
	cr_assert_eq(mutex.users, 0);
	cr_assert_eq(GET(mutex.owner), 0);
}

Test(mutex, excludes_natives)
{
	stress(FZ_MUTEX_NORMAL, 0, WORKERS);
}

Test(mutex, excludes_fibers_on_one_processor)
{
	stress(FZ_MUTEX_NORMAL, 1, 0);
}

Test(mutex, excludes_fibers)
{
	stress(FZ_MUTEX_ERRORCHECK, 2, 0);
}

Test(mutex, excludes_fibers_recursive)
{
	stress(FZ_MUTEX_RECURSIVE, 4, 0);
}

Test(mutex, excludes_fibers_and_natives)
{
	stress(FZ_MUTEX_RECURSIVE, 2, WORKERS / 2);
}
