/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <poll.h>
#include <unistd.h>

#include "requests.h"
#include "runtime/io/op.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

/* ---- by a deadline ------------------------------------------------------- */

Test(op_cancel, deadline_without_data)
{
	char buf[4] = "abc";
	fz_nsec start;
	int p[2];

	setup_start(1);
	cr_assert_eq(pipe(p), 0);
	for (int i = 0; i < 50; i++) {
		start = now_ns();
		cr_assert_eq(wait_read(p[0], buf, 4, start + FZ_MSEC), FZ_OP_TIMEOUT);
		cr_assert_geq(now_ns() - start, FZ_MSEC);
	}
	cr_assert_eq(wait_read(p[0], buf, 4, 1), FZ_OP_TIMEOUT);
	cr_assert_str_eq(buf, "abc");
	/* Nobody reads any more: what comes now is for who asks then. */
	cr_assert_eq(write(p[1], "xyz", 4), 4);
	cr_assert_eq(wait_read(p[0], buf, 4, FZ_FOREVER), 4);
	cr_assert_str_eq(buf, "xyz");
	cr_assert(backends_are_idle());
}

static _Atomic bool over;

static void *dribble(void *arg)
{
	int fd = (int)(uintptr_t)arg;
	uint64_t seed = 3;
	uint32_t n = 0;

	while (!GET(over)) {
		fz_nsec until = now_ns() + random_next(&seed) % (60 * FZ_USEC);

		while (now_ns() < until)
			continue;
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			break;
		n++;
	}
	close(fd);
	return (void *)(uintptr_t)n;
}

/*
 * Data and deadline race: what the kernel took out of the pipe is returned, never
 * dropped.  The sum tells.
 */
static void race_of_data_and_deadline(unsigned processors)
{
	uint32_t next = 0, got;
	uint64_t seed = 17;
	unsigned timeouts = 0;
	pthread_t t;
	void *written;
	int p[2], ret;

	setup_start(processors);
	cr_assert_eq(pipe(p), 0);
	t = native(dribble, (void *)(uintptr_t)p[1]);
	for (unsigned i = 0; i < 20000; i++) {
		ret = wait_read(p[0], &got, sizeof(got),
				now_ns() + random_next(&seed) % (50 * FZ_USEC));
		if (ret == FZ_OP_TIMEOUT) {
			timeouts++;
			continue;
		}
		cr_assert_eq(ret, sizeof(got));
		cr_assert_eq(got, next, "number %u came instead of %u", got, next);
		next++;
	}
	SET(over, true);
	while ((ret = wait_read(p[0], &got, sizeof(got), FZ_FOREVER)) > 0)
		cr_assert_eq(got, next++);
	cr_assert_eq(ret, 0);
	pthread_join(t, &written);
	cr_assert_eq((uintptr_t)written, next);
	cr_assert_gt(timeouts, 0);
	cr_assert(backends_are_idle());
}

Test(op_cancel, data_that_races_with_the_deadline_is_returned)
{
	race_of_data_and_deadline(1);
}

Test(op_cancel, data_that_races_with_the_deadline_is_returned_two_processors)
{
	race_of_data_and_deadline(2);
}

static int silent[2];

static void *time_out_often(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 77 + 1;

	for (unsigned i = 0; i < 300; i++) {
		if (wait_ready(silent[0], POLLIN, now_ns() + random_next(&seed) % (200 * FZ_USEC)) !=
		    FZ_OP_TIMEOUT)
			return (void *)1;
		if (random_next(&seed) % 4 == 0)
			yield_fiber();
	}
	return NULL;
}

/*
 * The sleeper may continue on another processor than the one whose ring has the
 * request, maybe not yet submitted.  A cancellation that got lost would leave it
 * asleep for ever.
 */
static void timeouts_everywhere(unsigned processors)
{
	enum { N = 100 };
	struct fz_fiber *f[N];

	setup_start(processors);
	cr_assert_eq(pipe(silent), 0);
	for (uintptr_t i = 0; i < N; i++)
		f[i] = spawn_with(time_out_often, (void *)i, 65536, false);
	for (int i = 0; i < N; i++)
		cr_assert_null(join(f[i]));
	cr_assert(EVENTUALLY(backends_are_idle()));
}

Test(op_cancel, timeouts_on_one_processor)
{
	timeouts_everywhere(1);
}

Test(op_cancel, timeouts_while_fibers_are_stolen)
{
	timeouts_everywhere(4);
}

/* ---- by a cancellation of the fiber -------------------------------------- */

enum { CANCELED_BIT = 8 };

static void *poll_for_ever(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)wait_ready(silent[0], POLLIN, FZ_FOREVER);
}

static void cancel(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();

	atomic_fetch_or(fz_tcb_cancelhandling(f->tcb), CANCELED_BIT);
	atomic_store(&f->cancel.sent, true);
	fz_enter_runtime(self);
	fz_wake_any(f, FZ_WHY_CANCEL);
	fz_leave_runtime(self);
}

static void cancel_at_once(unsigned processors)
{
	enum { N = 60, ROUNDS = 30 };
	struct fz_fiber *f[N];
	uint64_t seed = 5;

	setup_start(processors);
	cr_assert_eq(pipe(silent), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++)
			f[i] = spawn_with(poll_for_ever, NULL, 65536, false);
		for (uint64_t n = random_next(&seed) % 4; n; n--)
			yield_fiber();
		for (int i = 0; i < N; i++)
			cancel(f[i]);
		for (int i = 0; i < N; i++)
			cr_assert_eq((intptr_t)join(f[i]), FZ_OP_CANCEL);
	}
	cr_assert(EVENTUALLY(backends_are_idle()));
}

Test(op_cancel, cancel_one_processor)
{
	cancel_at_once(1);
}

Test(op_cancel, cancel_while_fibers_are_stolen)
{
	cancel_at_once(4);
}
