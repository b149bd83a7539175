/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/futex.c - futexes: wake-ups by bits, FUTEX_WAKE_OP, turns of the lot and the kernel.
 */
#include "tests/model/scenarios/sync/futex.h"

static _Atomic uint32_t nobody;

/* The first wake-up is for the second waiter only, and all that come later find the word changed. */
static void by_bits(int i)
{
	const struct __kernel_timespec until = fz_timespec(model_now() + FZ_MSEC);

	if (i < 2) {
		wait_for(&word, 1u << i, scenario_now->clock ? &until : NULL);
		return;
	}
	wake(&word, 1, 2);
	change();
	wake(&word, ALL, 3);
}

SCENARIO(futex) = { .name = "futex",
	.what = "2 wait for a bit each, a third wakes one, then the other",
	.processors = 2, .fibers = 3, .thread = by_bits, .finish = as_many };

SCENARIO(futex_timed) = { .name = "futex_timed",
	.what = "the same, the waits have deadlines",
	.processors = 2, .fibers = 3, .thread = by_bits, .finish = as_many, .clock = true };

SCENARIO(futex_native) = { .name = "futex_native",
	.what = "the same, one waiter is in the kernel, the waker no fiber",
	.processors = 1, .fibers = 1, .natives = 2, .thread = by_bits, .finish = as_many, .counts_wakes = true };

/* Of two that add, the first finds 0, and wakes who waits for `other`; what compares with 7 wakes nobody. */
static void by_operation(int i)
{
	long ret;

	if (i < 2) {
		if (wait_for(i ? &other : &word, 1, NULL))
			MODEL_CHECK(other, "the wake-up comes before the change");
		return;
	}
	ret = call(&nobody, FUTEX_WAKE_OP, ALL, ALL, &other,
		   FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 7));
	MODEL_CHECK(ret == 0, "%ld are woken that did not wait for it", ret);
	change();
	allowed = 1;
	ret = call(&word, FUTEX_WAKE_OP, ALL, ALL, &other,
		   FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
	MODEL_CHECK(ret >= 0 && ret <= 2, "FUTEX_WAKE_OP: %ld", ret);
	woken += (int)ret;
}

static void both_added(void)
{
	as_many();
	MODEL_CHECK(other == 2, "%u instead of 2", other);
}

SCENARIO(futex_op) = { .name = "futex_op",
	.what = "2 wait for a word each, 2 others add, and wake both",
	.processors = 2, .fibers = 4, .thread = by_operation, .finish = both_added };

/* Fibers 0 and 1, native threads 2 and 3: who waits for `other` is in the kernel. */
static void op_by_natives(int i)
{
	static const int as[] = { 0, 2, 1, 3 };

	by_operation(as[i]);
}

SCENARIO(futex_op_native) = { .name = "futex_op_native",
	.what = "the same, one that waits and one that adds are native threads",
	.processors = 1, .fibers = 2, .natives = 2, .thread = op_by_natives, .finish = both_added,
	.counts_wakes = true };

/* The 64th wake-up of a thread asks the kernel first, where the native thread waits; then the lot. */
static void in_turns(int i)
{
	if (i != 1) {
		wait_for(&word, 1, NULL);
		return;
	}
	for (int n = 1; n < 64; n++)
		MODEL_CHECK(call(&nobody, FUTEX_WAKE, 1, 0, NULL, 0) == 0, "one is woken, and nobody waits");
	change();
	wake(&word, 2, 1);
}

SCENARIO(futex_turns) = { .name = "futex_turns",
	.what = "one waits in the lot, one in the kernel, and a 64th wake-up comes",
	.processors = 1, .fibers = 2, .natives = 1, .thread = in_turns, .finish = as_many, .counts_wakes = true };
