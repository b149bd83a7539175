/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/meet.c - barriers and once.
 */
#include "tests/model/scenario.h"

#include "runtime/sync/barrier.h"
#include "runtime/sync/once.h"

static struct fz_barrier b;
static struct fz_once once;
static _Atomic int arrived, last, ran;

static void of_two(void)
{
	b.count = 2;
}

static void meet_twice(int i)
{
	(void)i;
	for (int round = 1; round <= 2; round++) {
		arrived++;
		last += fz_barrier_wait(&b);
		MODEL_CHECK(arrived >= 2 * round, "one went on before all had arrived");
	}
}

static void one_last_each(void)
{
	MODEL_CHECK(last == 2, "%d were the last of 2 rounds", last);
}

SCENARIO(barrier) = { .name = "barrier", .what = "2 fibers meet twice", .processors = 2, .fibers = 2,
	.prepare = of_two, .thread = meet_twice, .finish = one_last_each };

/* POSIX allows to destroy it right after the wait: what is new there then is none of the other's. */
static void meet_and_destroy(int i)
{
	(void)i;
	if (!fz_barrier_wait(&b))
		return;
	fz_barrier_destroy(&b);
	b.both = 0;
	b.left = 0;
}

static void untouched(void)
{
	MODEL_CHECK(b.both == 0 && b.left == 0, "a destroyed one was touched");
}

SCENARIO(barrier_destroy) = { .name = "barrier_destroy", .what = "2 fibers meet, the last destroys it",
	.processors = 2, .fibers = 2, .prepare = of_two, .thread = meet_and_destroy,
	.finish = untouched };

static void run_once_(int i)
{
	(void)i;
	if (!fz_once_is_done(&once) && fz_once_begin(&once)) {
		ran++;
		fz_once_end(&once, true);
	}
	MODEL_CHECK(ran == 1, "it has run %d times", ran);
}

SCENARIO(once) = { .name = "once", .what = "3 fibers run a routine once", .processors = 2, .fibers = 3,
	.thread = run_once_ };
