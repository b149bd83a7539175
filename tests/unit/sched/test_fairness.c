/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/sched/park.h"
#include "runtime_setup.h"
#include "sched_fixture.h"

static _Atomic bool over;
static _Atomic unsigned running;
static unsigned log_of[1000], logged;	/* one processor: nobody else runs */

static void *log_twice(void *arg)
{
	/* From here on all are in the queue. */
	COUNT(running);
	while (!GET(flag))
		yield_fiber();
	for (int i = 0; i < 2; i++) {
		log_of[logged++] = (unsigned)(uintptr_t)arg;
		yield_fiber();
	}
	return NULL;
}

Test(fairness, yield_lets_all_others_run)
{
	enum { N = 20 };
	struct fz_fiber *f[N];
	unsigned seen[N] = { 0 };

	setup_start(1);
	for (uintptr_t i = 0; i < N; i++)
		f[i] = spawn(log_twice, (void *)i);
	while (GET(running) < N)
		yield_fiber();
	SET(flag, true);
	for (int i = 0; i < N; i++)
		join(f[i]);
	cr_assert_eq(logged, 2 * N);
	/* The first half of the log has each of them once. */
	for (int i = 0; i < N; i++)
		seen[log_of[i]]++;
	for (int i = 0; i < N; i++)
		cr_assert_eq(seen[i], 1, "fiber %d ran %u times in the first round", i, seen[i]);
}

static _Atomic unsigned turns[8];

static void *take_turns(void *arg)
{
	while (!GET(over)) {
		COUNT(turns[(uintptr_t)arg]);
		yield_fiber();
	}
	return NULL;
}

static bool turns_are_fair(unsigned *ret_least, unsigned *ret_most)
{
	*ret_least = ~0u;
	*ret_most = 0;
	for (int i = 0; i < 8; i++) {
		unsigned n = GET(turns[i]);

		*ret_least = n < *ret_least ? n : *ret_least;
		*ret_most = n > *ret_most ? n : *ret_most;
	}
	return *ret_least >= *ret_most / 2;
}

Test(fairness, yielding_fibers_share_fairly)
{
	struct fz_fiber *f[8];
	unsigned least, most;

	setup_start(1);
	for (uintptr_t i = 0; i < 8; i++)
		f[i] = spawn(take_turns, (void *)i);
	while (GET(turns[0]) < 300000)
		yield_fiber();
	/* Preempted by the kernel, one misses some, which even out: on a busy machine, later. */
	while (!turns_are_fair(&least, &most) && GET(turns[0]) < 20000000)
		yield_fiber();
	SET(over, true);
	for (int i = 0; i < 8; i++)
		join(f[i]);
	cr_assert_geq(least, most / 2, "from %u to %u turns", least, most);
}

/* Two that wake each other in turn do not keep a third from running. */
static struct fz_ticket peer[2];
static _Atomic uint64_t peer_number[2];
static _Atomic unsigned wakes;

enum { MOST_WAKES = 5000000 };

static void *wake_each_other(void *arg)
{
	struct fz_fiber *self = fz_self();
	int me = (int)(uintptr_t)arg;

	while (!GET(over) && COUNT(wakes) < MOST_WAKES) {
		fz_enter_runtime(self);
		peer[me] = fz_wait_arm(self, 0);
		SET(peer_number[me], peer[me].number);
		if (GET(peer_number[!me]))
			fz_wake(peer[!me], FZ_WHY_DONE);
		fz_park(self, now_ns() + 100 * FZ_MSEC);
		fz_leave_runtime(self);
	}
	return NULL;
}

Test(fairness, next_slot_starves_nobody)
{
	struct fz_fiber *f[3];

	setup_start(1);
	f[0] = spawn(wake_each_other, (void *)0);
	f[1] = spawn(wake_each_other, (void *)1);
	while (GET(wakes) < 1000)
		nap(FZ_MSEC);
	f[2] = spawn(set_flag, NULL);
	while (!GET(flag))
		yield_fiber();
	/* How long the others went on meanwhile, counted by what they did. */
	cr_assert_lt(GET(wakes), MOST_WAKES);
	SET(over, true);
	for (int i = 0; i < 3; i++)
		join(f[i]);
}
