/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <unistd.h>

#include "runtime/sched/poll_cycles.h"
#include "runtime_setup.h"

/* Returns how many ticks it took, one after the other, until they were long. */
static int ticks_until_long(void)
{
	for (int n = 1; n < 1000; n++)
		if (fz_tick_choose(false, false) == FZ_TICK_LONG)
			return n;
	return 0;
}

Test(tick, long_after_many_without_need)
{
	int n = ticks_until_long();

	cr_assert_gt(n, 2);
	cr_assert_eq(fz_tick_choose(false, false), FZ_TICK_LONG, "it stays so");
	cr_assert_eq(fz_tick_choose(false, true), 1);
	cr_assert_not(GET(fz_tick_is_long));
	cr_assert_eq(ticks_until_long(), n, "all of them again");
}

Test(tick, not_long_while_no_processor_is_in_use)
{
	int n = ticks_until_long();

	cr_assert_gt(fz_tick_choose(true, false), 1);
	cr_assert_not(GET(fz_tick_is_long));
	cr_assert_eq(ticks_until_long(), n, "all of them again");
}

Test(tick, whoever_makes_a_fiber_runnable_ends_it)
{
	cr_assert(ticks_until_long());
	cr_assert(GET(fz_tick_is_long));
	fz_tick_note_runnable();
	cr_assert_not(GET(fz_tick_is_long));
}

/* The main fiber runs, and there is no other. */
Test(tick, long_where_one_fiber_runs_alone)
{
	int looks = 400000;

	setup_start(2);
	/* Not by nap(): a deadline of the fiber's own is for a carrier to wait for. */
	while (!GET(fz_tick_is_long) && --looks)
		usleep(100);
	cr_assert(looks);
}
