/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/signal.c - a signal becomes pending for a thread that waits, or is about to.
 */
#include "tests/model/scenario.h"

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/sched/monitor.h"
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

/* ---- two of one number ----------------------------------------------------- */

enum { SIG_QUEUED = 40 };

static struct fz_signode *nodes[2];

static void make_nodes(void)
{
	const char info[128] = { 0 };

	for (int i = 0; i < 2; i++)
		nodes[i] = fz_signode_new(SIG_QUEUED, info, true, false);
}

/* The second may come while the first is taken: it is seen, too. */
static void take_both(int i)
{
	struct fz_fiber *self = fz_self(), *f;
	int left = 2;

	if (i) {
		await(&there, 1);
		f = atomic_load_explicit(&receiver, memory_order_relaxed);
		fz_enter_runtime(self);
		fz_sigqueue_add(f, nodes[i - 1]);
		fz_wake_due(f);
		fz_leave_runtime(self);
		return;
	}
	receive(self);
	self->sig.sigwait_set = fz_signal_bit(SIG_QUEUED);
	while (left) {
		fz_enter_runtime(self);
		left -= fz_sigqueue_take(self, fz_signal_bit(SIG_QUEUED)) != NULL;
		fz_leave_runtime(self);
		if (left)
			fz_sleep(self, FZ_FOR_TIME, FZ_FOREVER, FZ_WAIT_SIGNAL);
	}
	self->sig.sigwait_set = 0;
	calls++;
}

SCENARIO(signal_both) = { .name = "signal_both", .what = "2 signals of one number are sent to one that takes them",
	.processors = 2, .fibers = 3, .prepare = make_nodes, .thread = take_both, .finish = has_slept };

/* ---- it waits in the process's queue, from which the monitor offers it ----- */

static _Atomic int handled;

static void on_signal(int sig, void *info, void *ucontext)
{
	(void)sig;
	(void)info;
	(void)ucontext;
	handled++;
}

static void block_and_queue(void)
{
	const uint64_t bit = fz_signal_bit(SIG), restart = FLAG_RESTART;
	const struct fz_action action = { .handler = on_signal, .flags = restart };
	const struct kernel_sigaction ours = { .handler = fz_host.signal_handler, .flags = restart | FLAG_SIGINFO };
	const struct fz_siginfo info = fz_signal_info(SIG, CODE_USER, 0);
	struct fz_fiber *self = fz_self();
	uint64_t mask;

	fz_signal_actions_lock(&mask);
	MODEL_CHECK(kernel_action(SIG, &ours, NULL) == 0, "no handler");
	fz_signal_action_set(SIG, &action, false);
	fz_signal_actions_unlock(&mask);
	fz_signal_set_mask(self, HOW_BLOCK, &bit, NULL);
	fz_enter_runtime(self);
	fz_signal_process_lock();
	fz_signal_pending_add(fz_signode_new(SIG, &info, false, false));
	fz_signal_process_unlock();
	fz_leave_runtime(self);
}

/* Unblocked, it is handled before that call returns, as natively. */
static void unblock_or_poke(int i)
{
	const uint64_t bit = fz_signal_bit(SIG);

	if (i) {
		fz_monitor_poke();
		return;
	}
	fz_signal_set_mask(fz_self(), HOW_UNBLOCK, &bit, NULL);
	MODEL_CHECK(handled == 1, "unblocked, it is handled %d times", handled);
}

SCENARIO(signal_offered) = { .name = "signal_offered", .what = "a signal is unblocked while the monitor offers it",
	.processors = 2, .fibers = 2, .prepare = block_and_queue, .thread = unblock_or_poke };
