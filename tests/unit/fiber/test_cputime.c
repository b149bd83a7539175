/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <time.h>

#include "runtime/base/time.h"
#include "runtime/fiber/cputime.h"
#include "runtime_setup.h"

enum { SPIN = 5 * FZ_MSEC, TURNS = 10, MANY = 20 };

static _Atomic bool go, done;

static uint64_t of_process(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * FZ_SEC + (uint64_t)ts.tv_nsec;
}

/* By the kernel's clock, and without a switch. */
static void spin(void)
{
	const uint64_t end = fz_cputime_of_tid(0) + SPIN;

	while (fz_cputime_of_tid(0) < end)
		continue;
}

static void *wait_for_go(void *arg)
{
	while (!GET(go))
		nap(FZ_MSEC);
	return arg;
}

static void *ask(void *arg)
{
	fz_cputime_of(fz_self());
	return arg;
}

Test(cputime, is_exact_for_those_whose_time_is_asked)
{
	struct fz_fiber *other, *new;

	setup_start(2);
	other = spawn(wait_for_go, NULL);
	cr_assert_not(GET(fz_cputime_exact));
	fz_cputime_of(fz_self());
	cr_assert(GET(fz_cputime_exact));
	cr_assert(GET(fz_self()->cpu.exact));
	cr_assert_not(GET(other->cpu.exact));
	fz_cputime_of(other);
	cr_assert(GET(other->cpu.exact));
	SET(go, true);
	join(other);
	new = spawn(wait_for_go, NULL);
	cr_assert_not(GET(new->cpu.exact), "a new life begins without");
	join(new);
	for (int i = 0; i < MANY; i++)
		join(spawn(ask, NULL));
	new = spawn(wait_for_go, NULL);
	cr_assert(GET(new->cpu.exact), "this program asks for all");
	join(new);
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		spin();
		yield_fiber();
	}
	return arg;
}

Test(cputime, is_the_fibers_own)
{
	const uint64_t began = of_process();
	struct fz_fiber *other;
	uint64_t before, used;

	setup_start(1);
	before = fz_cputime_of(fz_self());
	other = spawn(take_turns, NULL);
	take_turns(NULL);
	used = fz_cputime_of(fz_self()) - before;
	cr_assert_geq(used, TURNS * SPIN);
	join(other);
	cr_assert_leq(used + TURNS * SPIN, of_process() - began);
	cr_assert_geq(fz_cputime_of(fz_self()) - before, used);
}

static void *spin_until_go(void *arg)
{
	while (!GET(go))
		spin();
	return arg;
}

/* One that does not ask itself, and does not switch. */
static void watch_another(uint32_t processors)
{
	struct fz_fiber *other;
	uint64_t last = 0;

	setup_start(processors);
	other = spawn(spin_until_go, NULL);
	/* Its turn has begun before anybody asks. */
	while (GET(other->cpu.time) < SPIN && of_process() < 20 * SPIN)
		nap(FZ_MSEC);
	for (int i = 1; i <= 5; i++) {
		uint64_t now;

		while ((now = fz_cputime_of(other)) < (uint64_t)i * SPIN) {
			cr_assert_geq(now, last);
			last = now;
			nap(FZ_MSEC);
		}
	}
	SET(go, true);
	join(other);
	cr_assert_leq(last, of_process());
}

Test(cputime, of_another_grows)
{
	watch_another(2);
}

/* While the watching fiber has the only processor. */
Test(cputime, of_another_grows_without_a_processor, .timeout = 60)
{
	watch_another(1);
}

/* The burst ends on a carrier that has lost its processor: nobody looks at its clock meanwhile. */
static void *burst(void *arg)
{
	const uint64_t end = fz_cputime_of_tid(0) + 20 * SPIN;

	while (fz_cputime_of_tid(0) < end)
		continue;
	SET(done, true);
	return wait_for_go(arg);
}

Test(cputime, without_a_processor_is_counted)
{
	struct fz_fiber *other;

	setup_start(1);
	other = spawn(burst, NULL);
	while (!GET(done))
		nap(FZ_MSEC);
	cr_assert_geq(fz_cputime_of(other), 15 * SPIN);
	SET(go, true);
	join(other);
}
