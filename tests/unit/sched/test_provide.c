/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <linux/io_uring.h>
#include <unistd.h>

#include "runtime/base/time.h"
#include "runtime/io/op.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/provide.h"
#include "runtime/sched/sched_internal.h"
#include "runtime_setup.h"

enum { PROCESSORS = 4, FIBERS = 40, ROUNDS = 20 };

/* limit: how many are open, and in the bits above WIDTH a number that no other limit has. */
enum { WIDTH = 8 };
static _Atomic unsigned limit, violations, beyond_first;
static _Atomic bool over;

/*
 * After a turn, a fiber runs on a processor that was open when the turn began; but the choice of one
 * fiber may be under way on each processor while it is closed.
 */
static void *looks_where_it_runs(void *arg)
{
	while (!GET(over)) {
		const unsigned most = GET(limit);
		ptrdiff_t i;

		yield_fiber();
		i = fz_processor_of(fz_self()) - fz_sched.processors;
		if (most == GET(limit) && i >= (ptrdiff_t)(most & ((1 << WIDTH) - 1)))
			atomic_fetch_add(&violations, 1);
		if (i)
			atomic_fetch_add(&beyond_first, 1);
	}
	return arg;
}

static void *reads(void *arg)
{
	char c = 0;
	struct fz_op op = {
		.opcode = IORING_OP_READ, .fd = (int)(intptr_t)arg, .addr = (uintptr_t)&c, .len = 1,
		.off = ~(uint64_t)0,
	};
	int ret = fz_op_wait(fz_self(), &op, FZ_FOREVER, 0);

	return (void *)(intptr_t)(ret == 1 ? c : ret);
}

static void *naps(void *arg)
{
	nap(20 * FZ_MSEC);
	return arg;
}

static void close_and_open(enum fz_backend_kind backend)
{
	struct fz_fiber *turn[FIBERS], *reader[FIBERS], *sleeper[FIBERS];
	int p[FIBERS][2];

	atomic_store(&limit, PROCESSORS);
	setup_start_on(PROCESSORS, backend);
	for (int i = 0; i < FIBERS; i++) {
		cr_assert_eq(pipe(p[i]), 0);
		turn[i] = spawn(looks_where_it_runs, NULL);
		reader[i] = spawn(reads, (void *)(intptr_t)p[i][0]);
	}
	cr_assert(EVENTUALLY(GET(beyond_first)));
	for (int round = 0; round < ROUNDS; round++) {
		const unsigned open = round % 2 ? PROCESSORS : 1 + (unsigned)round / 2 % 2;
		const unsigned number = (unsigned)(round + 1) << WIDTH;

		for (int i = 0; i < FIBERS; i++)
			sleeper[i] = spawn(naps, NULL);
		/* In this order, so that a fiber knows of no limit that is not in force. */
		if (open == PROCESSORS)
			atomic_store(&limit, number | open);
		fz_enter_runtime(fz_self());
		SET(fz_sched.allowed, open);
		fz_provide_open(open);
		fz_leave_runtime(fz_self());
		atomic_store(&limit, number | open);
		/* What waits on a processor that is closed now comes back all the same. */
		for (int i = 0; i < FIBERS; i++)
			cr_assert_eq(write(p[i][1], "r", 1), 1);
		for (int i = 0; i < FIBERS; i++) {
			cr_assert_eq((intptr_t)join(reader[i]), 'r');
			reader[i] = spawn(reads, (void *)(intptr_t)p[i][0]);
			join(sleeper[i]);
		}
		if (open == PROCESSORS) {
			atomic_store(&beyond_first, 0);
			cr_assert(EVENTUALLY(GET(beyond_first)));
		}
	}
	atomic_store(&over, true);
	for (int i = 0; i < FIBERS; i++) {
		cr_assert_eq(write(p[i][1], "r", 1), 1);
		join(turn[i]);
		join(reader[i]);
	}
	cr_assert_leq(GET(violations), ROUNDS / 2 * (PROCESSORS - 1));
}

Test(provide, closed_processors_run_no_fiber)
{
	close_and_open(FZ_BACKEND_AUTO);
}

Test(provide, closed_processors_run_no_fiber_on_epoll)
{
	close_and_open(FZ_BACKEND_EPOLL);
}

static _Atomic bool arrived;

static void *takes_turns(void *arg)
{
	while (!GET(over))
		yield_fiber();
	return arg;
}

/* Returns in the runtime, on processor i. */
static void go_to(struct fz_fiber *self, int i)
{
	fz_enter_runtime(self);
	/* Another may steal it on the way. */
	while (fz_processor_of(self) != &fz_sched.processors[i])
		fz_sched_yield_to(self, &fz_sched.processors[i]);
}

static void *moves_where_it_is_closed(void *arg)
{
	struct fz_fiber *self = fz_self();
	struct fz_processor *to = &fz_sched.processors[1];
	enum fz_owner_state state;

	go_to(self, 0);
	/* As between a look at the other processor and the move. */
	SET(fz_sched.allowed, 1);
	fz_provide_open(1);
	/* Its carrier waits there, or has left it. */
	do
		state = owner_load(to) & FZ_OWNER_STATE_MASK;
	while (state != FZ_OWNER_WAITING && state != FZ_OWNER_FREE);
	fz_sched_yield_to(self, to);
	SET(arrived, true);
	fz_leave_runtime(self);
	return arg;
}

static void *moves_from_where_it_is_closed(void *arg)
{
	struct fz_fiber *self = fz_self();
	struct fz_carrier *c;

	go_to(self, 1);
	c = self->carrier;
	SET(fz_sched.allowed, 1);
	fz_provide_open(1);
	fz_sched_yield_to(self, fz_sched.processors);
	SET(arrived, !c->yields_to);
	fz_leave_runtime(self);
	return arg;
}

/* Beside others that always run, so that no processor looks for fibers elsewhere. */
static void move_beside_others(void *(*f)(void *))
{
	enum { OTHERS = 4 };
	struct fz_fiber *other[OTHERS], *mover;

	setup_start(2);
	for (int i = 0; i < OTHERS; i++)
		other[i] = spawn(takes_turns, NULL);
	mover = spawn(f, NULL);
	cr_assert(EVENTUALLY(GET(arrived)));
	SET(over, true);
	for (int i = 0; i < OTHERS; i++)
		join(other[i]);
	join(mover);
}

Test(provide, a_fiber_that_moves_is_not_left_on_a_closed_processor)
{
	move_beside_others(moves_where_it_is_closed);
}

Test(provide, a_fiber_that_cannot_move_leaves_no_goal_behind)
{
	move_beside_others(moves_from_where_it_is_closed);
}

/* ---- by the load ----------------------------------------------------------- */

static _Atomic bool computes;

/* Runs for some microseconds at a time, or does not call at all. */
static void *works(void *arg)
{
	while (!GET(over))
		if (!GET(computes))
			nap(FZ_MSEC);
	return arg;
}

static void follow_load(enum fz_backend_kind backend)
{
	enum { WORKERS = 8 };
	struct fz_fiber *worker[WORKERS];

	setup_start_on(PROCESSORS, backend);
	cr_assert_eq(GET(fz_sched.open), PROCESSORS);
	for (int i = 0; i < WORKERS; i++)
		worker[i] = spawn(works, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert(EVENTUALLY(GET(fz_sched.open) == 1));
		SET(computes, true);
		cr_assert(EVENTUALLY(GET(fz_sched.open) == PROCESSORS));
		SET(computes, false);
	}
	SET(over, true);
	for (int i = 0; i < WORKERS; i++)
		join(worker[i]);
}

Test(provide, as_many_processors_as_the_load_needs)
{
	follow_load(FZ_BACKEND_AUTO);
}

Test(provide, as_many_processors_as_the_load_needs_on_epoll)
{
	follow_load(FZ_BACKEND_EPOLL);
}

/* It needs a processor that nothing is on its way to. */
Test(provide, one_more_for_a_fiber_that_is_alone)
{
	setup_start(PROCESSORS);
	fz_enter_runtime(fz_self());
	fz_provide_open(1);
	fz_leave_runtime(fz_self());
	SET(fz_sched.quiet_wanted, true);
	cr_assert(EVENTUALLY(GET(fz_sched.open) == 2));
}
