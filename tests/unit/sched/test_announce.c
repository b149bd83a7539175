/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/io/op.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/spawner.h"
#include "runtime_setup.h"

static int there[2], back[2], other[2];
static _Atomic bool ran, over;

/* A kernel thread that gives each byte back. */
static void *give_back(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		continue;
	return arg;
}

static void begin(unsigned processors)
{
	setup_start(processors);
	cr_assert_eq(pipe(there) | pipe(back) | pipe(other), 0);
	native(give_back, NULL);
}

static void wait_ready(int fd)
{
	struct fz_op op = { .opcode = IORING_OP_POLL_ADD, .fd = fd, .op_flags = POLLIN };

	fz_op_wait(fz_self(), &op, FZ_FOREVER, 0);
}

/* Wait for a byte that comes back, n times. */
static void wait_often(int n)
{
	char c = 0;

	while (n--) {
		cr_assert_eq(write(there[1], &c, 1), 1);
		wait_ready(back[0]);
		cr_assert_eq(read(back[0], &c, 1), 1);
	}
}

/* If the byte is there already, a wait does not count. */
static bool becomes_alone(void)
{
	for (int i = 0; i < 100; i++) {
		wait_often(FZ_ALONE_FROM);
		if (fz_is_alone(fz_self()))
			return true;
	}
	return false;
}

static void has_submitted(struct fz_carrier *c, void *arg)
{
	(void)arg;
	c->submitted = true;
}

static void *wait_for_other(void *arg)
{
	char c;

	wait_ready(other[0]);
	SET(ran, read(other[0], &c, 1) == 1);
	return arg;
}

Test(alone, after_many_waits_for_descriptors)
{
	begin(1);
	cr_assert_not(fz_is_alone(fz_self()));
	wait_often(FZ_ALONE_FROM / 2);
	cr_assert_not(fz_is_alone(fz_self()));
	cr_assert(becomes_alone());
	/* A wait for something else. */
	fz_sleep(fz_self(), FZ_FOR_TIME, now_ns() + FZ_USEC, 0);
	cr_assert_not(fz_is_alone(fz_self()));
	cr_assert(becomes_alone());
}

Test(alone, not_while_another_is_runnable)
{
	struct fz_fiber *f;

	begin(1);
	cr_assert(becomes_alone());
	f = spawn(wait_for_other, NULL);
	cr_assert_not(fz_is_alone(fz_self()));
	cr_assert_eq(write(other[1], "", 1), 1);
	join(f);
}

/* On the only processor somebody must wait for the completion of the other's request. */
Test(alone, not_beside_a_request_on_one_processor)
{
	struct fz_fiber *f;

	begin(1);
	f = spawn(wait_for_other, NULL);
	while (!EVENTUALLY(fz_wait_is_parked(f)))
		continue;
	cr_assert_not(becomes_alone());
	cr_assert_eq(write(other[1], "", 1), 1);
	join(f);
	cr_assert(GET(ran));
}

/* The call ends only when another fiber's request has been received, wherever that was made. */
Test(alone, leaves_requests_to_another_carrier)
{
	struct fz_fiber *f;
	char c;

	begin(2);
	f = spawn(wait_for_other, NULL);
	while (!EVENTUALLY(fz_wait_is_parked(f)))
		continue;
	cr_assert(becomes_alone());
	/* Both have made requests on the carriers before. */
	cr_assert_not(fz_carrier_has_requests(fz_self()->carrier));
	fz_announce(fz_self());
	cr_assert_eq(write(other[1], "", 1), 1);
	while (!GET(ran))
		cr_assert_eq(syscall(SYS_write, there[1], "", 1) + syscall(SYS_read, back[0], &c, 1), 2);
	fz_announce_end(fz_self());
	join(f);
}

/*
 * One that takes a carrier without requests makes some on it, sooner or later.  There is an end to the carriers
 * that are made for it, also where each of them has requests in flight.
 */
Test(alone, makes_no_carriers_without_end)
{
	enum { ASKS = 40, MOST = 16 };
	struct fz_fiber *f;
	uint32_t before;

	begin(2);
	f = spawn(wait_for_other, NULL);
	while (!EVENTUALLY(fz_wait_is_parked(f)))
		continue;
	before = fz_carrier_count();
	for (int i = 0; i < ASKS; i++) {
		fz_carrier_each(has_submitted, NULL);
		fz_enter_runtime(fz_self());
		fz_spawner_want_mortal();
		fz_leave_runtime(fz_self());
		nap(2 * FZ_MSEC);
	}
	cr_assert_leq(fz_carrier_count(), before + MOST);
	cr_assert_eq(write(other[1], "", 1), 1);
	join(f);
}

/* Runs until it is told, on the only processor. */
static void *run_long(void *arg)
{
	wait_ready(other[0]);
	SET(ran, true);
	while (!GET(over))
		yield_fiber();
	return arg;
}

static void *wake_it(void *arg)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_wake(*(struct fz_ticket *)arg, FZ_WHY_DONE);
	fz_leave_runtime(self);
	while (!GET(ran))
		nap(FZ_MSEC);
	return (void *)(uintptr_t)(write(back[1], "", 1) != 1);
}

static struct fz_ticket ticket;
static _Atomic bool armed;

static void *sleep_for_a_while(void *arg)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_waits_for(self, FZ_FOR_RUNTIME, NULL);
	ticket = fz_wait_arm(self, 0);
	SET(armed, true);
	fz_park(self, FZ_FOREVER);
	fz_leave_runtime(self);
	return run_long(arg);
}

/* Whoever loses the processor in such a call makes requests for some time. */
Test(alone, for_longer_after_a_loss)
{
	struct fz_fiber *f;
	pthread_t t;
	char c;

	begin(1);
	cr_assert_eq(write(other[1], "", 1), 1);
	f = spawn(sleep_for_a_while, NULL);
	while (!EVENTUALLY(GET(armed) && fz_wait_is_parked(f)))
		continue;
	cr_assert(becomes_alone());
	fz_announce(fz_self());
	t = native(wake_it, &ticket);
	cr_assert_eq(syscall(SYS_read, back[0], &c, 1), 1);
	SET(over, true);
	cr_assert(fz_announce_end(fz_self()));
	pthread_join(t, NULL);
	join(f);
	wait_often(FZ_ALONE_FROM);
	cr_assert_not(fz_is_alone(fz_self()));
}
