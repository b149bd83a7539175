/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <unistd.h>

#include "runtime/base/host.h"
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

/* A clock by which each look takes a while, as in a time when the cycle counter is read slowly. */
static fz_nsec told, step;

static int slow_clock(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	told += step;
	*ts = (struct timespec){ (time_t)(told / FZ_SEC), (long)(told % FZ_SEC) };
	return 0;
}

/* The runtime's start with a counter that is read slowly; later looks are of the test's own making. */
static void start_slowly(void)
{
	setup_layout();
	fz_host.clock_gettime = slow_clock;
	told = FZ_SEC;
	step = 10 * FZ_USEC;
	fz_poll_cycles_start();
	cr_assert_not(GET(fz_sched.cycles_are_cheap));
}

/* The monitor's look, 100 ms after the one before. */
static void look_again(void)
{
	told += 100 * FZ_MSEC;
	fz_poll_cycles_measure(told);
}

Test(cycles, measured_after_a_time_of_slow_reads)
{
	start_slowly();
	for (int i = 0; i < 50; i++)
		look_again();
	cr_assert_not(GET(fz_sched.cycles_are_cheap));
	step = 1;
	look_again();
	cr_assert(GET(fz_sched.cycles_are_cheap));
	cr_assert_eq(GET(fz_sched.poll_cycles), 0, "one reading tells no rate");
	/* The counter must have moved, too. */
	usleep(1000);
	look_again();
	cr_assert_neq(GET(fz_sched.poll_cycles), 0);
}

Test(cycles, given_up_where_reads_stay_slow)
{
	start_slowly();
	for (int i = 0; i < 100; i++)
		look_again();
	step = 1;
	for (int i = 0; i < 100; i++)
		look_again();
	cr_assert_not(GET(fz_sched.cycles_are_cheap));
	cr_assert_eq(GET(fz_sched.poll_cycles), 0);
}
