/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/futex_requeue.c - a requeue of futexes loses no waiter, and no bits.
 */
#include "tests/model/scenarios/sync/futex.h"

/*
 * Who waits for `word` is moved with its bit, or, if `wakes`, one is woken and the other one moved; then who
 * waits for `other` is woken, one bit after the other.
 */
static void requeue(int i, bool wakes)
{
	const struct __kernel_timespec until = fz_timespec(model_now() + FZ_MSEC);
	long found, ret;

	if (i < 2) {
		wait_for(&word, 1u << i, i && scenario_now->clock ? &until : NULL);
		return;
	}
	ret = call(&word, FUTEX_CMP_REQUEUE, 1, ALL, &other, 7);
	MODEL_CHECK(ret == -EAGAIN, "the word is another, and the requeue does %ld", ret);
	change();
	if (wakes)
		allowed = 3;
	found = call(&word, wakes ? FUTEX_CMP_REQUEUE : FUTEX_REQUEUE, wakes, ALL, &other, 1);
	MODEL_CHECK(found >= 0 && found <= 2, "%ld of 2 are moved", found);
	ret = call(&word, FUTEX_WAKE, ALL, 0, NULL, 0);
	MODEL_CHECK(ret == 0, "%ld stay behind", ret);
	if (wakes && found)
		woken++;
	wake(&other, ALL, 2);
	wake(&other, ALL, 1);
	MODEL_CHECK(woken == found || (scenario_now->clock && woken == found - 1), "%ld found, %d woken", found,
		    woken);
}

static void move(int i)
{
	requeue(i, false);
}

static void wake_and_move(int i)
{
	requeue(i, true);
}

SCENARIO(futex_move) = { .name = "futex_move",
	.what = "2 wait for a bit each, a third moves both, and wakes one after the other",
	.processors = 2, .fibers = 3, .thread = move, .finish = as_many };

SCENARIO(futex_move_timed) = { .name = "futex_move_timed",
	.what = "the same, one has a deadline",
	.processors = 2, .fibers = 3, .thread = move, .finish = as_many, .clock = true };

SCENARIO(futex_requeue) = { .name = "futex_requeue",
	.what = "2 wait for a bit each, a third wakes one and moves the other",
	.processors = 2, .fibers = 3, .thread = wake_and_move, .finish = as_many };

SCENARIO(futex_requeue_native) = { .name = "futex_requeue_native",
	.what = "the same, one waiter is in the kernel",
	.processors = 1, .fibers = 1, .natives = 2, .thread = wake_and_move, .finish = as_many, .counts_wakes = true };
