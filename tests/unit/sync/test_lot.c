/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>

#include "runtime/sync/lot.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

/* Waiters that come one after the other and note the order in which they go. */
enum { MANY = 50 };

static _Atomic uint32_t word;
static _Atomic unsigned waiting, woken, timed_out;
static _Atomic unsigned order[MANY];

static void *wait_in_line(void *arg)
{
	unsigned mine = (unsigned)(uintptr_t)arg;

	/* The predecessors are in the lot: see come_in_line(). */
	COUNT(waiting);
	if (fz_lot_wait(&word, 0, FZ_FOREVER, 0) != 0)
		return (void *)1;
	SET(order[mine], COUNT(woken) + 1);
	return NULL;
}

static bool is_parked(struct fz_fiber *f)
{
	return (GET(f->wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED;
}

Test(lot, the_word_differs)
{
	setup_layout();
	SET(word, 1);
	cr_assert_eq(fz_lot_wait(&word, 0, FZ_FOREVER, 0), -EAGAIN);
	cr_assert_eq(fz_lot_wake(&word, 10), 0);
}

Test(lot, fibers_are_woken_in_order_and_counted)
{
	struct fz_fiber *f[MANY];

	setup_start(1);
	for (uintptr_t i = 0; i < MANY; i++) {
		f[i] = spawn_with(wait_in_line, (void *)i, 65536, false);
		cr_assert(EVENTUALLY(is_parked(f[i])));
	}
	cr_assert_eq(fz_lot_wake(&word, 0), 0);
	cr_assert_eq(fz_lot_wake(&word, 1), 1);
	cr_assert(EVENTUALLY(GET(woken) == 1));
	cr_assert_eq(fz_lot_wake(&word, 20), 20);
	cr_assert(EVENTUALLY(GET(woken) == 21));
	cr_assert_eq(fz_lot_wake(&word + 1, 5), 0, "another word");
	cr_assert_eq(fz_lot_wake(&word, UINT32_MAX), MANY - 21);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_null(join(f[i]));
	cr_assert_eq(GET(woken), MANY);
	/* Who is woken first comes first; within one call the queue may mix. */
	cr_assert_eq(GET(order[0]), 1);
	for (unsigned i = 1; i < 21; i++)
		cr_assert(GET(order[i]) >= 2 && GET(order[i]) <= 21);
	cr_assert_eq(fz_lot_wake(&word, 1), 0);
}

/* One at a time, so that the order is exact; natives and fibers mixed. */
Test(lot, natives_and_fibers_share_one_line)
{
	enum { EACH = 6 };
	struct fz_fiber *f[EACH];
	pthread_t threads[EACH];

	setup_start(2);
	for (uintptr_t i = 0; i < EACH; i++) {
		f[i] = spawn(wait_in_line, (void *)(2 * i));
		cr_assert(EVENTUALLY(is_parked(f[i])));
		threads[i] = native(wait_in_line, (void *)(2 * i + 1));
		cr_assert(EVENTUALLY(GET(waiting) == 2 * i + 2));
		/* From there it is a few instructions to the lot, but a thread's. */
		nap(5 * FZ_MSEC);
	}
	for (unsigned i = 0; i < 2 * EACH; i++) {
		cr_assert_eq(fz_lot_wake(&word, 1), 1);
		cr_assert(EVENTUALLY(GET(woken) == i + 1));
		cr_assert_eq(GET(order[i]), i + 1, "number %u was woken as number %u", i,
			     GET(order[i]));
	}
	for (unsigned i = 0; i < EACH; i++) {
		cr_assert_null(join(f[i]));
		pthread_join(threads[i], NULL);
	}
}

static void *wait_shortly(void *arg)
{
	if (fz_lot_wait(&word, 0, now_ns() + (uintptr_t)arg, 0) != -ETIMEDOUT)
		return (void *)1;
	COUNT(timed_out);
	return NULL;
}

/* Who has left by its deadline takes no wake-up with it. */
Test(lot, timeout_leaves_the_wake_up_to_others)
{
	struct fz_fiber *impatient, *patient;
	pthread_t thread;

	setup_start(1);
	impatient = spawn(wait_shortly, (void *)(2 * FZ_MSEC));
	thread = native(wait_shortly, (void *)(2 * FZ_MSEC));
	cr_assert(EVENTUALLY(GET(timed_out) == 2));
	patient = spawn(wait_in_line, NULL);
	cr_assert(EVENTUALLY(is_parked(patient)));
	cr_assert_eq(fz_lot_wake(&word, 1), 1);
	cr_assert_null(join(patient));
	cr_assert_null(join(impatient));
	pthread_join(thread, NULL);
}

static void *wait_for_cancel(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)fz_lot_wait(&word, 0, FZ_FOREVER, FZ_WAIT_CANCEL);
}

Test(lot, cancel_is_reported_and_leaves_the_wake_up)
{
	struct fz_fiber *self = fz_self(), *f, *patient;

	setup_start(1);
	f = spawn(wait_for_cancel, NULL);
	cr_assert(EVENTUALLY(is_parked(f)));
	patient = spawn(wait_in_line, NULL);
	cr_assert(EVENTUALLY(is_parked(patient)));
	fz_enter_runtime(self);
	cr_assert(fz_wake_any(f, FZ_WHY_CANCEL));
	fz_leave_runtime(self);
	cr_assert_eq((intptr_t)join(f), -ECANCELED);
	cr_assert_eq(fz_lot_wake(&word, 1), 1);
	cr_assert_null(join(patient));
}

/*
 * No wake-up is lost: a counting semaphore made of the lot alone.  Takers wait
 * with and without deadlines; if one wake-up went astray, the count would be
 * positive while somebody sleeps for ever.
 */
enum { TOKENS = 20000, TAKERS = 6, GIVERS = 2 };

static _Atomic uint32_t tokens, sleepers;
static _Atomic unsigned taken;
static _Atomic bool over;

static bool take_token(void)
{
	uint32_t n = GET(tokens);

	while (n)
		if (atomic_compare_exchange_weak(&tokens, &n, n - 1))
			return true;
	return false;
}

static void *take(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	while (GET(taken) < TOKENS) {
		fz_nsec deadline = FZ_FOREVER;

		if (take_token()) {
			COUNT(taken);
			continue;
		}
		if (random_next(&seed) % 4 == 0)
			deadline = now_ns() + random_next(&seed) % (100 * FZ_USEC);
		atomic_fetch_add(&sleepers, 1);
		if (!GET(over))
			fz_lot_wait(&tokens, 0, deadline, 0);
		atomic_fetch_sub(&sleepers, 1);
	}
	SET(over, true);
	/* The word must differ for who is on its way to sleep. */
	atomic_fetch_add(&tokens, 1);
	fz_lot_wake(&tokens, UINT32_MAX);
	return NULL;
}

static void *give(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TOKENS / GIVERS; i++) {
		atomic_fetch_add(&tokens, 1);
		if (GET(sleepers))
			fz_lot_wake(&tokens, 1);
	}
	return NULL;
}

static void exchange_tokens(unsigned fibers, unsigned natives)
{
	struct fz_fiber *f[TAKERS + GIVERS];
	pthread_t threads[TAKERS + GIVERS];
	unsigned nf = 0, nt = 0;

	for (uintptr_t i = 0; i < fibers; i++)
		f[nf++] = spawn(take, (void *)i);
	for (uintptr_t i = 0; i < natives; i++)
		threads[nt++] = native(take, (void *)(i + 100));
	for (unsigned i = 0; i < GIVERS; i++)
		if (fibers && i % 2 == 0)
			f[nf++] = spawn(give, NULL);
		else
			threads[nt++] = native(give, NULL);
	while (nf)
		join(f[--nf]);
	while (nt)
		pthread_join(threads[--nt], NULL);
	cr_assert_geq(GET(taken), TOKENS);
	cr_assert_eq(GET(sleepers), 0);
}

Test(lot, no_wake_up_is_lost_natives)
{
	setup_layout();
	exchange_tokens(0, TAKERS);
}

Test(lot, no_wake_up_is_lost_fibers)
{
	setup_start(2);
	exchange_tokens(TAKERS, 0);
}

Test(lot, no_wake_up_is_lost_mixed)
{
	setup_start(3);
	exchange_tokens(TAKERS / 2, TAKERS / 2);
}

/* Native threads that end as soon as they are woken: nobody touches them then. */
static _Atomic uint32_t gate;

static void *wait_and_die(void *arg)
{
	(void)arg;
	while (!GET(gate))
		fz_lot_wait(&gate, 0, FZ_FOREVER, 0);
	return NULL;
}

Test(lot, native_waiters_may_vanish_at_once)
{
	setup_layout();
	for (unsigned i = 0; i < 300; i++) {
		pthread_attr_t attr;
		pthread_t threads[4];

		/* Big, so that libc unmaps instead of keeping it. */
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 64 << 20);
		SET(gate, 0);
		for (int n = 0; n < 4; n++)
			cr_assert_eq(pthread_create(&threads[n], &attr, wait_and_die, NULL), 0);
		if (i % 2)
			sched_yield();
		SET(gate, 1);
		fz_lot_wake(&gate, UINT32_MAX);
		for (int n = 0; n < 4; n++)
			pthread_join(threads[n], NULL);
		pthread_attr_destroy(&attr);
	}
}

static void *wait_for_bits(void *arg)
{
	COUNT(waiting);
	if (fz_lot_wait_bits(&word, 0, (uint32_t)(uintptr_t)arg, FZ_FOREVER, 0) != 0)
		return (void *)1;
	COUNT(woken);
	return NULL;
}

Test(lot, wakes_by_bits)
{
	struct fz_fiber *one, *two;

	setup_start(1);
	one = spawn(wait_for_bits, (void *)1);
	two = spawn(wait_for_bits, (void *)6);
	cr_assert(EVENTUALLY(is_parked(one) && is_parked(two)));
	cr_assert_eq(fz_lot_wake_bits(&word, 9, 8), 0);
	cr_assert_eq(fz_lot_wake_bits(&word, 9, 4), 1);
	cr_assert_null(join(two));
	cr_assert(is_parked(one));
	cr_assert_eq(fz_lot_wake_bits(&word, 9, UINT32_MAX), 1);
	cr_assert_null(join(one));
}

/* The first is woken, the next two wait elsewhere, the last where it was. */
Test(lot, requeues_in_order)
{
	static _Atomic uint32_t other;
	struct fz_lot_requeue plan = { .wake = 1, .move = 2 };
	const uint32_t zero = 0, one = 1;
	struct fz_fiber *f[4];

	setup_start(1);
	for (uintptr_t i = 0; i < 4; i++) {
		f[i] = spawn(wait_in_line, (void *)i);
		cr_assert(EVENTUALLY(is_parked(f[i])));
	}
	cr_assert_not(fz_lot_requeue(&word, &other, &one, &plan), "the word differs");
	cr_assert(fz_lot_requeue(&word, &other, &zero, &plan));
	cr_assert(plan.woken == 1 && plan.moved == 2);
	cr_assert_null(join(f[0]));
	cr_assert_eq(fz_lot_wake(&word, 9), 1);
	cr_assert_null(join(f[3]));
	cr_assert_eq(fz_lot_wake(&other, 1), 1);
	cr_assert_null(join(f[1]));
	cr_assert_eq(fz_lot_wake(&other, 9), 1);
	cr_assert_null(join(f[2]));
}

/* Who was moved leaves by its deadline from where it is. */
Test(lot, requeued_waiters_time_out)
{
	static _Atomic uint32_t other;
	struct fz_lot_requeue plan = { .wake = 0, .move = 9 };
	struct fz_fiber *f;

	setup_start(1);
	f = spawn(wait_shortly, (void *)(50 * FZ_MSEC));
	while (!plan.moved && !GET(timed_out))
		fz_lot_requeue(&word, &other, NULL, &plan);
	cr_assert_null(join(f));
	cr_assert_eq(fz_lot_wake(&other, 9), 0);
	cr_assert_eq(fz_lot_wake(&word, 9), 0);
}
