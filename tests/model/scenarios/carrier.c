/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/carrier.c - kernel threads that fibers leave, block and end: a call that must not be
 * interrupted, a wait alone, a close that lasts, room for a thread that the kernel refused, turns.
 */
#include "tests/model/scenario.h"

#include <errno.h>

#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"

static _Atomic uint32_t rounds;

/* A call of the program that takes some time. */
static void real_call(void)
{
	const struct __kernel_timespec ts = fz_timespec(FZ_MSEC / 2);

	fz_syscall2(__NR_nanosleep, (long)&ts, 0);
}

static void announced_call(void)
{
	fz_announce(fz_self());
	real_call();
	fz_announce_end(fz_self());
}

static void all_rounds(void)
{
	MODEL_CHECK(rounds == scenario_now->fibers + scenario_now->natives, "%u rounds", rounds);
}

/* ---- carriers end ---------------------------------------------------------- */

/* The kernel has refused a thread: the idle carriers end, while others are handed processors. */
static void room(int i)
{
	int tries = 0;

	if (i < 2) {
		announced_call();
		fz_sched_give_way(fz_self());
	} else {
		MODEL_CHECK(fz_carrier_made_room(fz_self(), -EAGAIN, &tries), "no room was made");
	}
	announce(&rounds);
}

SCENARIO(room) = { .name = "room", .what = "idle carriers end for a third fiber, while 2 announce calls",
	.processors = 1, .fibers = 3, .thread = room, .finish = all_rounds };

SCENARIO(room_ring) = { .name = "room_ring", .what = "the same on io_uring", .processors = 2, .fibers = 3,
	.thread = room, .finish = all_rounds, .rings = true };

/* ---- fibers change carriers and processors -------------------------------- */

static void undisturbed(int i)
{
	if (i < 2) {
		fz_announce_undisturbed(fz_self());
		real_call();
		fz_announce_end(fz_self());
	} else {
		model_nap(FZ_MSEC);
	}
	announce(&rounds);
}

SCENARIO(undisturbed) = { .name = "undisturbed", .what = "2 fibers leave their requests behind for a call, a third sleeps",
	.processors = 2, .fibers = 3, .thread = undisturbed, .finish = all_rounds, .rings = true };

/* As fz_io_wait() does for a descriptor. */
static void wait_alone(void)
{
	struct fz_fiber *self = fz_self();

	self->call.was_alone = true;
	self->waits_alone = FZ_ALONE_FROM;
	if (fz_is_alone(self)) {
		announced_call();
		fz_alone_note_loss(self);
	}
}

static void alone(int i)
{
	if (i == 0)
		wait_alone();
	else
		model_nap((uint64_t)i * FZ_MSEC);
	announce(&rounds);
}

SCENARIO(alone) = { .name = "alone", .what = "a fiber waits alone, by its own call, while 2 sleep",
	.processors = 2, .fibers = 3, .thread = alone, .finish = all_rounds };

SCENARIO(alone_ring) = { .name = "alone_ring", .what = "the same on io_uring", .processors = 2, .fibers = 3,
	.thread = alone, .finish = all_rounds, .rings = true };

static void block(int i)
{
	struct fz_fiber *self = fz_self();

	if (i < 2) {
		fz_enter_runtime(self);
		fz_block_in_runtime(self);
		real_call();
		fz_block_in_runtime_end(self);
		fz_leave_runtime(self);
	}
	fz_sched_give_way(self);
	announce(&rounds);
}

SCENARIO(block) = { .name = "block", .what = "2 fibers block in the runtime, a third wants the processor",
	.processors = 1, .fibers = 3, .thread = block, .finish = all_rounds };

/* ---- the spawner's turns ----------------------------------------------------- */

static _Atomic int holders;

static void take_turns(int i)
{
	struct fz_fiber *self = fz_self();

	fz_spawner_turn_begin(self);
	MODEL_CHECK(!holders++, "two fibers have the turn");
	if (i == 0) {
		/* Again: the first end is not the end. */
		fz_spawner_turn_begin(self);
		fz_spawner_turn_end(self);
	}
	announced_call();
	holders--;
	fz_spawner_turn_end(self);
	announce(&rounds);
}

SCENARIO(turns) = { .name = "turns", .what = "3 fibers, one at a time, block kernel threads for the spawner",
	.processors = 1, .fibers = 3, .thread = take_turns, .finish = all_rounds };

SCENARIO(turns_apart) = { .name = "turns_apart", .what = "the same on 2 processors", .processors = 2,
	.fibers = 3, .thread = take_turns, .finish = all_rounds };

/* ---- a fiber looks for events itself --------------------------------------- */

static void poll_or_nap(int i)
{
	if (i == 0)
		for (int n = 0; n < 4; n++)
			fz_sched_poll_and_yield(fz_self());
	else
		model_nap((uint64_t)i * FZ_MSEC);
	announce(&rounds);
}

SCENARIO(poll_yield) = { .name = "poll_yield", .what = "a fiber polls while 2 sleep", .processors = 1,
	.fibers = 3, .thread = poll_or_nap, .finish = all_rounds };

SCENARIO(poll_yield_ring) = { .name = "poll_yield_ring", .what = "the same on io_uring", .processors = 1,
	.fibers = 3, .thread = poll_or_nap, .finish = all_rounds, .rings = true };
