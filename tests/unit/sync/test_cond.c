/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>

#include "runtime/sync/cond.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

_Static_assert(sizeof(struct fz_cond) <= sizeof(pthread_cond_t), "fits");

static struct fz_mutex mutex;
static struct fz_cond cond;

Test(cond, clock_flag_is_where_libc_keeps_it)
{
	pthread_condattr_t attr;
	pthread_cond_t c;

	pthread_condattr_init(&attr);
	pthread_cond_init(&c, &attr);
	cr_assert_eq(GET(((struct fz_cond *)&c)->flags), 0);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c, &attr);
	cr_assert_eq(GET(((struct fz_cond *)&c)->flags), FZ_COND_MONOTONIC);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&c, &attr);
	cr_assert_eq(GET(((struct fz_cond *)&c)->flags), FZ_COND_MONOTONIC | FZ_COND_SHARED);
}

Test(cond, times_out_with_the_mutex_held)
{
	fz_nsec start = now_ns();

	setup_layout();
	mutex.kind = FZ_MUTEX_ERRORCHECK;
	fz_mutex_lock(&mutex, FZ_FOREVER);
	cr_assert_eq(fz_cond_wait(&cond, &mutex, start + 5 * FZ_MSEC), -ETIMEDOUT);
	cr_assert_geq(now_ns() - start, 5 * FZ_MSEC);
	cr_assert_eq(fz_mutex_unlock(&mutex), 0);
	cr_assert_eq(GET(cond.waiters), 0);
}

Test(cond, recursive_mutex_is_released_whole_and_restored)
{
	setup_layout();
	mutex.kind = FZ_MUTEX_RECURSIVE;
	for (int i = 0; i < 3; i++)
		fz_mutex_lock(&mutex, FZ_FOREVER);
	cr_assert_eq(fz_cond_wait(&cond, &mutex, now_ns() + FZ_MSEC), -ETIMEDOUT);
	cr_assert_eq(mutex.count, 3);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(fz_mutex_unlock(&mutex), 0);
	cr_assert_eq(fz_mutex_unlock(&mutex), -EPERM);
}

static void *hold_twice(void *arg)
{
	_Atomic int *state = arg;

	fz_mutex_lock(&mutex, FZ_FOREVER);
	fz_mutex_lock(&mutex, FZ_FOREVER);
	SET(*state, 1);
	while (GET(*state) != 2)
		nap(100 * FZ_USEC);
	return (void *)(uintptr_t)mutex.count;
}

/* Who does not hold it gets an error, and the holder's count stays. */
Test(cond, mutex_of_another)
{
	static _Atomic int state;
	void *count;
	pthread_t t;

	setup_layout();
	mutex.kind = FZ_MUTEX_RECURSIVE;
	t = native(hold_twice, &state);
	cr_assert(EVENTUALLY(GET(state) == 1));
	cr_assert_eq(fz_cond_wait(&cond, &mutex, now_ns() + FZ_SEC), -EPERM);
	cr_assert_eq(GET(cond.waiters), 0);
	SET(state, 2);
	pthread_join(t, &count);
	cr_assert_eq((uintptr_t)count, 2);
}

static _Atomic unsigned waiting, passed;
static unsigned tickets;		/* guarded by mutex */

static void *wait_for_ticket(void *arg)
{
	fz_mutex_lock(&mutex, FZ_FOREVER);
	COUNT(waiting);
	while (!tickets)
		if (fz_cond_wait(&cond, &mutex, FZ_FOREVER))
			return (void *)1;
	tickets--;
	fz_mutex_unlock(&mutex);
	COUNT(passed);
	return arg;
}

static void give_tickets(unsigned n, uint32_t wake)
{
	fz_mutex_lock(&mutex, FZ_FOREVER);
	tickets += n;
	fz_mutex_unlock(&mutex);
	fz_cond_wake(&cond, wake);
}

Test(cond, signal_wakes_one_broadcast_all)
{
	enum { N = 30 };
	struct fz_fiber *f[N];

	setup_start(2);
	for (int i = 0; i < N; i++)
		f[i] = spawn(wait_for_ticket, NULL);
	cr_assert(EVENTUALLY(GET(cond.waiters) == 2 * N));
	for (unsigned i = 0; i < 5; i++) {
		give_tickets(1, 1);
		cr_assert(EVENTUALLY(GET(passed) == i + 1));
	}
	give_tickets(N - 5, UINT32_MAX);
	for (int i = 0; i < N; i++)
		cr_assert_null(join(f[i]));
	cr_assert_eq(GET(passed), N);
	cr_assert_eq(GET(cond.waiters), 0);
}

/* A bounded queue: each item comes out once, with signals only. */
enum { ITEMS = 30000, ROOM = 4, PRODUCERS = 3, CONSUMERS = 3 };

static struct fz_cond not_full, not_empty;
static unsigned queue[ROOM], head, used;	/* guarded by mutex */
static _Atomic unsigned next_item, received;
static _Atomic unsigned char seen[ITEMS];

static void *produce(void *arg)
{
	(void)arg;
	for (;;) {
		unsigned item = COUNT(next_item);

		if (item >= ITEMS)
			break;
		fz_mutex_lock(&mutex, FZ_FOREVER);
		while (used == ROOM)
			fz_cond_wait(&not_full, &mutex, FZ_FOREVER);
		queue[(head + used++) % ROOM] = item;
		fz_mutex_unlock(&mutex);
		fz_cond_wake(&not_empty, 1);
	}
	return NULL;
}

static void *consume(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	while (COUNT(received) < ITEMS) {
		unsigned item;

		fz_mutex_lock(&mutex, FZ_FOREVER);
		while (!used) {
			fz_nsec deadline = FZ_FOREVER;

			if (random_next(&seed) % 4 == 0)
				deadline = now_ns() + random_next(&seed) % (50 * FZ_USEC);
			fz_cond_wait(&not_empty, &mutex, deadline);
		}
		item = queue[head];
		head = (head + 1) % ROOM;
		used--;
		fz_mutex_unlock(&mutex);
		fz_cond_wake(&not_full, 1);
		COUNT(seen[item]);
	}
	return NULL;
}

static void bounded_queue(unsigned processors, bool natives)
{
	struct fz_fiber *f[PRODUCERS + CONSUMERS];
	pthread_t threads[PRODUCERS + CONSUMERS];

	if (processors)
		setup_start(processors);
	else
		setup_layout();
	for (uintptr_t i = 0; i < PRODUCERS + CONSUMERS; i++) {
		void *(*fn)(void *) = i % 2 ? produce : consume;

		if (natives && (!processors || i < 2))
			threads[i] = native(fn, (void *)i);
		else
			f[i] = spawn(fn, (void *)i);
	}
	for (unsigned i = 0; i < PRODUCERS + CONSUMERS; i++)
		if (natives && (!processors || i < 2))
			pthread_join(threads[i], NULL);
		else
			join(f[i]);
	for (unsigned i = 0; i < ITEMS; i++)
		cr_assert_eq(GET(seen[i]), 1, "item %u came %u times", i, GET(seen[i]));
	cr_assert_eq(GET(not_empty.waiters), 0);
	cr_assert_eq(GET(not_full.waiters), 0);
}

Test(cond, bounded_queue_natives)
{
	bounded_queue(0, true);
}

Test(cond, bounded_queue_one_processor)
{
	bounded_queue(1, false);
}

Test(cond, bounded_queue_fibers)
{
	bounded_queue(2, false);
}

Test(cond, bounded_queue_mixed)
{
	bounded_queue(2, true);
}

static void *be_canceled(void *arg)
{
	int err;

	(void)arg;
	fz_mutex_lock(&mutex, FZ_FOREVER);
	err = fz_cond_wait(&cond, &mutex, FZ_FOREVER);
	/* Held again: it is ours to release. */
	if (fz_mutex_unlock(&mutex))
		return (void *)99;
	return (void *)(intptr_t)err;
}

Test(cond, cancel_takes_no_signal_and_returns_the_mutex)
{
	struct fz_fiber *self = fz_self(), *victim, *other;
	enum { CANCELED_BIT = 8 };

	setup_start(1);
	mutex.kind = FZ_MUTEX_ERRORCHECK;
	victim = spawn(be_canceled, NULL);
	cr_assert(EVENTUALLY(GET(cond.waiters) == 2));
	other = spawn(wait_for_ticket, NULL);
	cr_assert(EVENTUALLY(GET(cond.waiters) == 4));
	atomic_fetch_or(fz_tcb_cancelhandling(victim->tcb), CANCELED_BIT);
	atomic_store(&victim->cancel.sent, true);
	fz_enter_runtime(self);
	fz_wake_any(victim, FZ_WHY_CANCEL);
	fz_leave_runtime(self);
	cr_assert(EVENTUALLY(GET(cond.waiters) == 2));
	give_tickets(1, 1);
	cr_assert_null(join(other));
	cr_assert_eq((intptr_t)join(victim), -ECANCELED);
}

/* Memory of a destroyed condition variable may be used for other things at once. */
static struct fz_cond *_Atomic shared_cond;
static _Atomic unsigned in_wait;

static void *wait_on_shared(void *arg)
{
	(void)arg;
	for (;;) {
		struct fz_cond *c;

		fz_mutex_lock(&mutex, FZ_FOREVER);
		c = GET(shared_cond);
		if (!c) {
			fz_mutex_unlock(&mutex);
			return NULL;
		}
		COUNT(in_wait);
		while (GET(shared_cond) == c)
			fz_cond_wait(c, &mutex, FZ_FOREVER);
		fz_mutex_unlock(&mutex);
	}
}

static void destroy_under_waiters(unsigned rounds)
{
	for (unsigned i = 0; i <= rounds; i++) {
		struct fz_cond *old = GET(shared_cond), *new = i < rounds ? malloc(sizeof(*new)) : NULL;

		if (new)
			__builtin_memset(new, 0, sizeof(*new));
		fz_mutex_lock(&mutex, FZ_FOREVER);
		SET(shared_cond, new);
		fz_cond_wake(old, UINT32_MAX);
		fz_mutex_unlock(&mutex);
		fz_cond_destroy(old);
		cr_assert_eq(GET(old->waiters), 0);
		__builtin_memset(old, 0xee, sizeof(*old));
		free(old);
		if (i % 8 == 0)
			nap(20 * FZ_USEC);
	}
}

Test(cond, destroy_waits_for_who_was_woken)
{
	struct fz_fiber *f[3];
	pthread_t t;

	setup_start(2);
	SET(shared_cond, calloc(1, sizeof(struct fz_cond)));
	for (int i = 0; i < 3; i++)
		f[i] = spawn(wait_on_shared, NULL);
	t = native(wait_on_shared, NULL);
	destroy_under_waiters(3000);
	for (int i = 0; i < 3; i++)
		join(f[i]);
	pthread_join(t, NULL);
}
