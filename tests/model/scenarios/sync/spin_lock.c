/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/spin_lock.c - spin locks: one thread at a time, and who spins lets the holder run.
 */
#include "tests/model/scenario.h"

#include "runtime/sched/sched.h"
#include "runtime/sync/spin.h"

static struct fz_spin s;
static _Atomic int inside, entered;

static void unlocked(void)
{
	s.word = FZ_SPIN_FREE;
}

/* As preload/sync/spin.c has it. */
static void lock(void)
{
	if (!fz_spin_try(&s))
		fz_spin_lock_slowly(&s);
}

/*
 * On one processor the holder lets others run, as one does that is preempted.  On two, no carrier that sleeps learns
 * of a fiber that has yielded to a brief one (PROOF.md).
 */
static void lock_twice(int i)
{
	(void)i;
	for (int n = 0; n < 2; n++) {
		lock();
		MODEL_CHECK(++inside == 1, "two threads hold the lock");
		if (n == 0 && scenario_now->processors == 1)
			fz_sched_give_way(fz_self());
		MODEL_CHECK(inside-- == 1, "two threads hold the lock");
		entered++;
		fz_spin_unlock(&s);
	}
}

static void entered_all(void)
{
	MODEL_CHECK(entered == 2 * (int)(scenario_now->fibers + scenario_now->natives), "%d entries", entered);
	MODEL_CHECK(s.word == FZ_SPIN_FREE, "the lock is not free");
}

SCENARIO(spin_lock) = { .name = "spin_lock",
	.what = "3 fibers take a spin lock twice, on 2 processors",
	.processors = 2, .fibers = 3, .prepare = unlocked, .thread = lock_twice, .finish = entered_all };

SCENARIO(spin_lock_one) = { .name = "spin_lock_one",
	.what = "2 fibers take a spin lock twice, on 1 processor",
	.processors = 1, .fibers = 2, .prepare = unlocked, .thread = lock_twice, .finish = entered_all };

SCENARIO(spin_lock_native) = { .name = "spin_lock_native",
	.what = "a fiber and a native thread take a spin lock twice",
	.processors = 1, .fibers = 1, .natives = 1, .prepare = unlocked, .thread = lock_twice,
	.finish = entered_all };
