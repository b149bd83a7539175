/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/base/time.h"
#include "runtime/fiber/cputime.h"
#include "runtime_setup.h"

enum { SPIN = 20 * FZ_MSEC };

static uint64_t recorded(void)
{
	return GET(fz_self()->cpu.time);
}

/* By the kernel's clock, and without a switch. */
static void spin(void)
{
	const uint64_t end = fz_cputime_of_tid(0) + SPIN;

	while (fz_cputime_of_tid(0) < end)
		continue;
}

/* The monitor looks with its own time, too, so that the end may come only at a second look. */
static void relax(void)
{
	while (GET(fz_cputime_exact))
		fz_cputime_relax(fz_now() + 3600 * FZ_SEC);
}

Test(cputime, is_sampled_again_when_nobody_asks)
{
	setup_start(1);
	cr_assert_not(GET(fz_cputime_exact));
	fz_cputime_of(fz_self());
	cr_assert(GET(fz_cputime_exact));
	relax();
	cr_assert_not(GET(fz_cputime_exact));
	fz_cputime_of(fz_self());
	cr_assert(GET(fz_cputime_exact));
}

Test(cputime, nothing_is_lost_or_counted_twice)
{
	setup_start(1);
	for (int i = 0; i < 5; i++) {
		const uint64_t began = fz_cputime_of_tid(0), before = fz_cputime_of(fz_self());
		uint64_t used;

		spin();
		relax();
		cr_assert_geq(recorded(), before + SPIN);
		/* The monitor adds what it sees. */
		while (recorded() < before + 2 * SPIN)
			continue;
		used = fz_cputime_of(fz_self()) - before;
		cr_assert_leq(used, fz_cputime_of_tid(0) - began);
	}
}
