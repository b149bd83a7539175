/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "runtime/sched/runq.h"
#include "runtime_setup.h"

/* Fibers that are only names: .tid is their number. */
static struct fz_fiber *new_fibers(int n)
{
	struct fz_fiber *f = calloc((size_t)n, sizeof(*f));

	for (int i = 0; i < n; i++)
		f[i].thread.tid = i;
	return f;
}

Test(runq, first_in_first_out)
{
	struct fz_runq q = { .lock = FZ_LOCK(FZ_RANK_QUEUE) };
	struct fz_fiber *f = new_fibers(1000);

	cr_assert_null(fz_runq_pop(&q));
	for (int i = 0; i < 1000; i++) {
		fz_runq_push(&q, &f[i]);
		cr_assert_eq(fz_runq_length(&q), (uint32_t)i + 1);
	}
	for (int i = 0; i < 1000; i++) {
		struct fz_fiber *got = fz_runq_pop(&q);

		cr_assert_not_null(got);
		cr_assert_eq(got->thread.tid, i);
	}
	cr_assert_null(fz_runq_pop(&q));
	cr_assert_eq(fz_runq_length(&q), 0);
	/* Emptied and filled again: no stale tail. */
	fz_runq_push(&q, &f[3]);
	fz_runq_push(&q, &f[4]);
	cr_assert_eq(fz_runq_pop(&q)->thread.tid, 3);
	cr_assert_eq(fz_runq_pop(&q)->thread.tid, 4);
	cr_assert_null(q.tail);
}

Test(runq, slot_displaces_to_the_end)
{
	struct fz_runq q = { .lock = FZ_LOCK(FZ_RANK_QUEUE) };
	struct fz_fiber *f = new_fibers(4);

	cr_assert_null(fz_runq_pop_slot(&q));
	fz_runq_push(&q, &f[0]);
	fz_runq_push_slot(&q, &f[1]);
	cr_assert_eq(fz_runq_length(&q), 1, "the slot does not count");
	fz_runq_push_slot(&q, &f[2]);
	cr_assert_eq(fz_runq_length(&q), 2);
	cr_assert_eq(fz_runq_pop_slot(&q)->thread.tid, 2);
	cr_assert_null(fz_runq_pop_slot(&q));
	cr_assert_eq(fz_runq_pop(&q)->thread.tid, 0);
	cr_assert_eq(fz_runq_pop(&q)->thread.tid, 1);
	cr_assert_null(fz_runq_pop(&q));
}

/* Of `n` every third one computes. */
static struct fz_fiber *new_mixed_fibers(int n)
{
	struct fz_fiber *f = new_fibers(n);

	for (int i = 0; i < n; i += 3)
		while (!fz_fiber_is_cpu_bound(&f[i]))
			fz_fiber_found_running(&f[i]);
	return f;
}

static int pop_tid(struct fz_runq *q)
{
	struct fz_fiber *f = fz_runq_pop(q);

	return f ? f->thread.tid : -1;
}

Test(runq, those_that_compute_are_last)
{
	struct fz_runq q = { .lock = FZ_LOCK(FZ_RANK_QUEUE) };
	struct fz_fiber *f = new_mixed_fibers(7);	/* 0, 3, 6 */

	for (int i = 0; i < 7; i++)
		fz_runq_push(&q, &f[i]);
	cr_assert_eq(fz_runq_length(&q), 7);
	cr_assert_eq(fz_runq_brief(&q), 4);
	cr_assert_eq(pop_tid(&q), 1);
	cr_assert_eq(pop_tid(&q), 2);
	cr_assert_eq(pop_tid(&q), 4);
	cr_assert_eq(pop_tid(&q), 5);
	cr_assert_eq(fz_runq_brief(&q), 0);
	cr_assert_eq(pop_tid(&q), 0);
	fz_runq_push(&q, &f[1]);
	cr_assert_eq(fz_runq_brief(&q), 1);
	cr_assert_eq(pop_tid(&q), 1);
	cr_assert_eq(pop_tid(&q), 3);
	cr_assert_eq(pop_tid(&q), 6);
	cr_assert_eq(pop_tid(&q), -1);
	cr_assert_eq(fz_runq_brief(&q), 0);
	cr_assert_null(q.tail);
	free(f);
}

Test(runq, and_have_their_turn)
{
	struct fz_runq q = { .lock = FZ_LOCK(FZ_RANK_QUEUE) };
	struct fz_fiber *f = new_mixed_fibers(5);	/* 0, 3 */

	cr_assert_null(fz_runq_pop_cpu_bound(&q));
	for (int i = 0; i < 5; i++)
		fz_runq_push(&q, &f[i]);
	cr_assert_eq(fz_runq_pop_cpu_bound(&q)->thread.tid, 0);
	cr_assert_eq(fz_runq_pop_cpu_bound(&q)->thread.tid, 3, "the last of all");
	cr_assert_eq(fz_runq_pop_cpu_bound(&q)->thread.tid, 1, "no more of them");
	cr_assert_eq(fz_runq_brief(&q), 2);
	fz_runq_push(&q, &f[0]);
	fz_runq_push(&q, &f[1]);
	cr_assert_eq(pop_tid(&q), 2);
	cr_assert_eq(pop_tid(&q), 4);
	cr_assert_eq(pop_tid(&q), 1);
	cr_assert_eq(fz_runq_pop_cpu_bound(&q)->thread.tid, 0);
	cr_assert_eq(fz_runq_length(&q), 0);
	cr_assert_null(q.tail);
	free(f);
}

/* Computing is forgotten by switching often. */
Test(runq, who_computes)
{
	struct fz_fiber f = { .thread.tid = 0 };

	fz_fiber_found_running(&f);
	cr_assert(!fz_fiber_is_cpu_bound(&f), "anyone may be found running once");
	fz_fiber_found_running(&f);
	cr_assert(fz_fiber_is_cpu_bound(&f));
	for (int i = 0; i < 1000; i++)
		fz_fiber_found_running(&f);
	for (int i = 0; i < 20; i++)
		fz_fiber_has_run(&f);
	cr_assert(!fz_fiber_is_cpu_bound(&f));
}

static void steal_of(int n, int expected)
{
	struct fz_runq victim, mine;
	struct fz_fiber *f = new_fibers(n + 1);
	struct fz_fiber *got;

	fz_runq_init(&victim);
	fz_runq_init(&mine);
	for (int i = 0; i < n; i++)
		fz_runq_push(&victim, &f[i]);
	fz_runq_push(&mine, &f[n]);
	got = fz_runq_steal(&victim, &mine);
	if (expected == 0) {
		cr_assert_null(got);
		return;
	}
	cr_assert_eq(got->thread.tid, 0);
	cr_assert_eq(fz_runq_length(&victim), (uint32_t)(n - expected));
	cr_assert_eq(fz_runq_length(&mine), (uint32_t)expected, "one more was there before");
	cr_assert_eq(fz_runq_pop(&mine)->thread.tid, n);
	for (int i = 1; i < expected; i++)
		cr_assert_eq(fz_runq_pop(&mine)->thread.tid, i);
	for (int i = expected; i < n; i++)
		cr_assert_eq(fz_runq_pop(&victim)->thread.tid, i);
	cr_assert_null(fz_runq_pop(&mine));
	cr_assert_null(fz_runq_pop(&victim));
	free(f);
}

Test(runq, steals_the_older_half)
{
	steal_of(0, 0);
	steal_of(1, 1);
	steal_of(2, 1);
	steal_of(3, 2);
	steal_of(10, 5);
	steal_of(127, 64);
	steal_of(1000, 64);
}

/*
 * Owners push, pop and use their slots; thieves steal from all.  Each fiber has
 * a count of who holds it: it is in one place at a time, and none is lost.
 */
enum { QUEUES = 3, THREADS = 4, FIBERS = 300, ROUNDS = 100000 };

static struct fz_runq queues[QUEUES] = { [0 ... QUEUES - 1].lock = FZ_LOCK(FZ_RANK_QUEUE) };
static _Atomic int held[FIBERS];
static _Atomic unsigned twice;

static void took(struct fz_fiber *f)
{
	if (atomic_fetch_add(&held[f->thread.tid], 1) != 0)
		COUNT(twice);
}

static void put(struct fz_runq *q, struct fz_fiber *f, bool slot)
{
	atomic_fetch_sub(&held[f->thread.tid], 1);
	if (slot)
		fz_runq_push_slot(q, f);
	else
		fz_runq_push(q, f);
}

static void *juggle(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 7919 + 1;
	struct fz_runq *mine = &queues[(uintptr_t)arg % QUEUES];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fz_runq *other = &queues[random_next(&seed) % QUEUES];
		uint64_t what = random_next(&seed);
		struct fz_fiber *f;

		switch (what % 4) {
		case 0: f = fz_runq_pop_slot(other); break;
		case 1: f = other == mine ? NULL : fz_runq_steal(other, mine); break;
		case 2: f = fz_runq_pop_cpu_bound(mine); break;
		default: f = fz_runq_pop(mine); break;
		}
		if (!f)
			continue;
		took(f);
		what & 32 ? fz_fiber_found_running(f) : fz_fiber_has_run(f);
		put(&queues[random_next(&seed) % QUEUES], f, what & 64);
	}
	return NULL;
}

Test(runq, concurrent_push_pop_steal_lose_nothing)
{
	struct fz_fiber *f = new_fibers(FIBERS);
	pthread_t threads[THREADS];
	int seen[FIBERS] = { 0 };

	for (int i = 0; i < FIBERS; i++)
		fz_runq_push(&queues[i % QUEUES], &f[i]);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = native(juggle, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(GET(twice), 0);
	for (int q = 0; q < QUEUES; q++) {
		uint32_t length = fz_runq_length(&queues[q]), n = 0;
		struct fz_fiber *one;

		while ((one = fz_runq_pop(&queues[q]))) {
			seen[one->thread.tid]++;
			n++;
		}
		cr_assert_eq(n, length);
		cr_assert_eq(fz_runq_brief(&queues[q]), 0);
		one = fz_runq_pop_slot(&queues[q]);
		if (one)
			seen[one->thread.tid]++;
	}
	for (int i = 0; i < FIBERS; i++)
		cr_assert_eq(seen[i], 1, "fiber %d was found %d times", i, seen[i]);
}
