/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/ignored.c - a signal number is ignored, and no longer, while a signal of it is on its way: what is
 * sent afterwards must not be taken for that one, which is void.
 */
#include "tests/model/scenario.h"

#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

enum { SIG = 10 };

static struct fz_fiber *_Atomic receiver;
static _Atomic uint32_t there, sent;

/* The main thread, and those that it makes. */
static void block(void)
{
	const uint64_t set = fz_signal_bit(SIG);

	fz_signal_set_mask(fz_self(), HOW_BLOCK, &set, NULL);
}

/* Wait until both senders have ended. */
static void begin_receiving(struct fz_fiber *self)
{
	atomic_store_explicit(&receiver, self, memory_order_relaxed);
	announce(&there);
	await(&sent, 2);
}

static void receive(struct fz_fiber *self)
{
	struct fz_signode *node;
	int received = 0;

	fz_enter_runtime(self);
	while ((node = fz_sigqueue_receive(self, fz_signal_bit(SIG)))) {
		fz_signode_free(node);
		received++;
	}
	MODEL_CHECK(received == 1, "%d signals are pending", received);
	MODEL_CHECK(!(self->pending & fz_signal_bit(SIG)), "a signal is pending that nobody has sent");
	fz_leave_runtime(self);
}

/* ---- to a thread ----------------------------------------------------------- */

static void add(void)
{
	const struct fz_siginfo info = fz_signal_info(SIG, CODE_TKILL, 0);
	struct fz_signode *node = fz_signode_new(SIG, &info, true, false);

	MODEL_CHECK(node, "no node");
	fz_sigqueue_add(atomic_load_explicit(&receiver, memory_order_relaxed), node);
}

static void receive_or_send(int i)
{
	struct fz_fiber *self = fz_self();

	if (i == 0) {
		begin_receiving(self);
		receive(self);
		return;
	}
	await(&there, 1);
	fz_enter_runtime(self);
	if (i == 2)
		fz_sigqueue_discard(SIG);
	add();
	fz_leave_runtime(self);
	announce(&sent);
}

SCENARIO(signal_ignored) = { .name = "signal_ignored",
	.what = "a signal is sent to a fiber while another thread ignores it, and sends it again",
	.processors = 2, .fibers = 3, .prepare = block, .thread = receive_or_send };

/* ---- to the process: in the inbox ------------------------------------------ */

static void receive_or_arrive(int i)
{
	const struct fz_siginfo info = fz_signal_info(SIG, CODE_USER, 0);
	struct fz_fiber *self = fz_self();

	if (i == 0) {
		begin_receiving(self);
		fz_enter_runtime(self);
		fz_signal_route_arrived();
		MODEL_CHECK(fz_signal_process_pending() & fz_signal_bit(SIG), "no signal is pending");
		fz_signal_process_lock();
		fz_signode_free(fz_signal_pending_take(fz_signal_bit(SIG)));
		fz_signal_process_unlock();
		fz_leave_runtime(self);
		return;
	}
	await(&there, 1);
	fz_enter_runtime(self);
	if (i == 2) {
		fz_sigqueue_discard(SIG);
		fz_signal_route_arrived();
	}
	fz_signal_leave_to_monitor(SIG, &info);
	fz_leave_runtime(self);
	announce(&sent);
}

SCENARIO(signal_ignored_inbox) = { .name = "signal_ignored_inbox",
	.what = "a signal arrives for the process while another thread ignores it, and it arrives again",
	.processors = 2, .fibers = 3, .prepare = block, .thread = receive_or_arrive };
