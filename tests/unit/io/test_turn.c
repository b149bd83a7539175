/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "no_numbers.h"
#include "runtime/io/op.h"
#include "runtime/io/turn.h"
#include "runtime_setup.h"

enum { READERS = 100, MOST_IN_FLIGHT = 5 };

static int p[2];
static _Atomic unsigned here, taken, refused;

static void *reads(void *arg)
{
	char c;
	struct fz_op op = {
		.opcode = IORING_OP_READ, .fd = p[0], .off = (uint64_t)-1, .addr = (uintptr_t)&c,
		.len = 1, .turn = POLLIN,
	};

	COUNT(here);
	switch (fz_op_wait(fz_self(), &op, FZ_FOREVER, FZ_WAIT_CANCEL)) {
	case 1:
		COUNT(taken);
		break;
	default:
		COUNT(refused);
	}
	return arg;
}

static uint32_t in_flight(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += fz_sched.processors[i].backend.ring.in_flight;
	return n;
}

static void begin(void)
{
	setup_start(1);
	cr_assert_eq(fz_backend_kind(), FZ_BACKEND_RING);
	cr_assert_eq(pipe(p), 0);
	for (int i = 0; i < READERS; i++)
		spawn(reads, NULL);
	/* One that is here waits when it is the turn of the test's fiber again. */
	while (GET(here) < READERS || !fz_turn_any(p[0]))
		yield_fiber();
	nap(20 * FZ_MSEC);
}

static void await(_Atomic unsigned *count, unsigned n)
{
	while (GET(*count) < n)
		yield_fiber();
}

/* The kernel is asked for a few of them, not for all. */
Test(turn, few_requests_for_many_readers)
{
	char bytes[READERS] = { 0 };

	begin();
	cr_assert_leq(in_flight(), MOST_IN_FLIGHT);
	for (unsigned i = 0; i < READERS / 2; i++) {
		cr_assert_eq(write(p[1], bytes, 1), 1);
		await(&taken, i + 1);
		cr_assert_leq(in_flight(), MOST_IN_FLIGHT);
	}
	cr_assert_eq(write(p[1], bytes, READERS / 2), READERS / 2);
	await(&taken, READERS);
	cr_assert_not(fz_turn_any(p[0]));
	cr_assert_eq(fz_turn_queues, 0);
}

/* The end of the file is for all. */
Test(turn, end_for_all)
{
	begin();
	close(p[1]);
	await(&refused, READERS);
	cr_assert_eq(fz_turn_queues, 0);
}

/* After the descriptor is closed, one copy is enough; it is gone when nobody waits. */
Test(turn, one_copy_when_closed)
{
	char bytes[READERS] = { 0 };

	signal(SIGPIPE, SIG_IGN);
	begin();
	fz_op_flush_fd(fz_self(), p[0]);
	close(p[0]);
	fz_op_closed(fz_self(), p[0]);
	cr_assert_eq(fz_turn_next(0), UINT_MAX);
	cr_assert_eq(write(p[1], bytes, READERS), READERS);
	await(&taken, READERS);
	cr_assert_eq(fz_turn_queues, 0);
	for (int i = 0; i < 100 && write(p[1], bytes, 1) == 1; i++)
		usleep(1000);
	cr_assert_eq(write(p[1], bytes, 1), -1);
	cr_assert_eq(errno, EPIPE);
}

/* ---- the queue alone ----------------------------------------------------------- */

static const struct fz_ticket nobody;

Test(turn, queues_by_descriptor_and_event)
{
	struct fz_turn a, b, c, d;

	cr_assert(fz_turn_begin(&a, 0, POLLIN, nobody));
	cr_assert(fz_turn_begin(&b, 0, POLLOUT, nobody));
	cr_assert(fz_turn_begin(&c, 64, POLLIN, nobody), "in the same bucket");
	cr_assert(fz_turn_begin(&d, 0, (uint64_t)8 << 32 | POLLIN, nobody));
	cr_assert_eq(fz_turn_queues, 4);
	cr_assert_eq(fz_turn_next(0), 0);
	cr_assert_eq(fz_turn_next(1), 64);
	fz_turn_end(&b);
	fz_turn_end(&b);
	fz_turn_end(&a);
	fz_turn_end(&d);
	cr_assert_eq(fz_turn_next(0), 64);
	fz_turn_end(&c);
	cr_assert_eq(fz_turn_next(0), UINT_MAX);
}

/* Without a number for a copy, the call that has just got its turn learns, too, that its descriptor is closed. */
Test(turn, no_number_for_a_copy)
{
	struct fz_turn a, later;
	int lowest;

	cr_assert_eq(pipe(p), 0);
	cr_assert(fz_turn_begin(&a, p[0], POLLIN, nobody));
	lowest = take_numbers();
	fz_turn_closing(p[0]);
	give_numbers_back(lowest);
	cr_assert_eq(fz_turn_copy(&a), -EBADF);
	cr_assert(fz_turn_begin(&later, p[0], POLLIN, nobody));
	cr_assert_eq(fz_turn_copy(&later), -1);
	fz_turn_end(&later);
	fz_turn_end(&a);
	cr_assert_eq(fz_turn_queues, 0);
}

Test(turn, after_fork)
{
	struct fz_turn a;

	fz_turn_begin(&a, 0, POLLIN, nobody);
	fz_turn_after_fork();
	cr_assert_not(fz_turn_any(0));
	cr_assert_eq(fz_turn_next(0), UINT_MAX);
}
