/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/signal.c - a signal becomes pending for a thread that waits, or is about to.
 */
#include "tests/model/scenario.h"

#include "runtime/base/time.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"
#include "runtime/sync/lot.h"

enum { SIG = 10 };

static struct fz_fiber *_Atomic receiver;
static _Atomic uint32_t there;
static struct fz_signode *node;
static int calls;

static void make_node(void)
{
	const char info[128] = { 0 };

	node = fz_signode_new(SIG, info, true, false);
	MODEL_CHECK(node, "no node");
}

static void deliver(struct fz_fiber *self)
{
	struct fz_fiber *f;

	while (!atomic_load_explicit(&there, memory_order_acquire))
		fz_lot_wait(&there, 0, FZ_FOREVER, 0);
	f = atomic_load_explicit(&receiver, memory_order_relaxed);
	fz_enter_runtime(self);
	fz_sigqueue_add(f, node);
	if (fz_signal_due(f))
		fz_wake_due(f);
	fz_leave_runtime(self);
}

static struct fz_signode *take(struct fz_fiber *self)
{
	struct fz_signode *taken;

	fz_enter_runtime(self);
	taken = fz_sigqueue_take(self, fz_signal_bit(SIG));
	fz_leave_runtime(self);
	return taken;
}

static void receive(struct fz_fiber *self)
{
	self->mask = ~(uint64_t)0;
	self->sig.sigwait_set = fz_signal_bit(SIG);
	atomic_store_explicit(&receiver, self, memory_order_relaxed);
	atomic_store_explicit(&there, 1, memory_order_release);
	fz_lot_wake(&there, UINT32_MAX);
}

/* It asks for the signal, and then sleeps: one that it has got does not end the sleep. */
static void take_and_sleep(int i)
{
	struct fz_fiber *self = fz_self();
	bool taken = false;
	enum fz_why why;

	if (i) {
		deliver(self);
		return;
	}
	receive(self);
	for (int asked = 0; asked < 2 && !taken; asked++) {
		fz_sched_give_way(self);
		taken = take(self);
	}
	why = fz_sleep(self, FZ_FOR_TIME, fz_now() + FZ_MSEC, FZ_WAIT_SIGNAL);
	MODEL_CHECK(why == FZ_WHY_TIMEOUT || !taken, "a signal that has been taken ends a sleep");
	self->sig.sigwait_set = 0;
	calls++;
}

static void has_slept(void)
{
	MODEL_CHECK(calls == 1, "%d calls", calls);
}

SCENARIO(signal_taken) = { .name = "signal_taken", .what = "a signal is taken while its sender is at work, and a sleep follows",
	.processors = 2, .fibers = 2, .prepare = make_node, .thread = take_and_sleep, .finish = has_slept };

/* It sleeps for ever, or is about to: the signal ends that. */
static void sleep_and_take(int i)
{
	struct fz_fiber *self = fz_self();

	if (i) {
		deliver(self);
		return;
	}
	receive(self);
	MODEL_CHECK(fz_sleep(self, FZ_FOR_TIME, FZ_FOREVER, FZ_WAIT_SIGNAL) == FZ_WHY_SIGNAL, "no signal");
	MODEL_CHECK(take(self), "no signal is pending");
	self->sig.sigwait_set = 0;
	calls++;
}

SCENARIO(signal_wakes) = { .name = "signal_wakes", .what = "a signal is sent to one that begins to sleep",
	.processors = 2, .fibers = 2, .prepare = make_node, .thread = sleep_and_take, .finish = has_slept };
