/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/sigwait.c - wait for a signal instead of handling it.
 *
 * The fiber parks. Meanwhile the signals that it waits for are substituted
 * (runtime/signal/action.c) and the monitor unblocks them: whatever kernel thread the kernel
 * picks, they come to our handler.
 */
#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/overrun.h"
#include "runtime/signal/signal_internal.h"

static struct {
	/* By signal, how many fibers wait for it; guarded by the registry's lock. */
	uint32_t waiters[FZ_SIGNALS + 1];
	_Atomic uint64_t set;		/* signals for which a fiber waits */
} waits;

uint64_t fz_signal_waited_for(void)
{
	/* relaxed: a thread that must know of a change is poked, or waits for the change. */
	return atomic_load_explicit(&waits.set, memory_order_relaxed);
}

struct change {
	struct fz_fiber *self;
	uint64_t set;			/* 0: ends its wait */
	uint64_t free;			/* answer: signals that no fiber waits for any more */
};

static void change_waits(void *arg)
{
	struct change *c = arg;
	uint64_t old = c->self->sig.sigwait_set, now = 0;

	for (int sig = 1; sig <= FZ_SIGNALS; sig++) {
		uint64_t bit = fz_signal_bit(sig);

		waits.waiters[sig] += !!(c->set & bit);
		waits.waiters[sig] -= !!(old & bit);
		if (waits.waiters[sig])
			now |= bit;
	}
	c->self->sig.sigwait_set = c->set;
	c->free = old & ~now;
	atomic_store_explicit(&waits.set, now, memory_order_relaxed);
}

static void note(struct fz_fiber *self, uint64_t set)
{
	struct change change = { .self = self, .set = set };

	if (set)
		fz_signal_substitute(set);
	fz_enter_runtime(self);
	if (fz_signal_change_accepted(change_waits, &change)) {
		/* Another thread's fz_signal_restore() may have undone this before it could see that this fiber waits. */
		if (set)
			fz_signal_substitute(set);
		fz_monitor_follow_mask();
	}
	if (change.free)
		fz_signal_restore(change.free);
	fz_leave_runtime(self);
}

/*
 * Take a signal that is pending for the thread, or for the process in our queue. Signals of lower
 * numbers go first: some may still be in the process's queue while others have been given to the
 * thread already.
 */
static int take(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info)
{
	struct fz_signode *node;
	int sig;

	/*
	 * Signals in the kernel came later than ours, even if ours are just being offered to other
	 * threads.
	 */
	if (FZ_UNLIKELY(fz_signal_has_come(set)) && !fz_sigqueue_has_directed(self, set)) {
		fz_enter_runtime(self);
		fz_signal_take_from_process(self, set);
		fz_leave_runtime(self);
	}
	node = fz_sigqueue_receive(self, set);
	if (!node)
		return 0;
	sig = node->sig;
	*ret_info = node->info;
	fz_signode_free(node);
	return sig;
}

static int take_and_tell(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info)
{
	int sig = take(self, set, ret_info);

	if (sig)
		fz_overrun_tell(ret_info);
	return sig;
}

/*
 * Like take(), but if there is none, take one from the kernel. Not while the monitor unblocks these
 * signals: an earlier signal may be on its way through the monitor.
 */
static int take_any(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info)
{
	static const struct __kernel_timespec none;
	long sig = take(self, set, ret_info);

	if (!sig)
		sig = fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)ret_info,
				  (long)&none, sizeof(set));
	if (sig > 0)
		fz_overrun_tell(ret_info);
	fz_signal_unmark(ret_info);
	return sig > 0 ? (int)sig : 0;
}

/* A handler that runs from here on ends the call, as in fz_signal_swap_mask(). */
static void begin(struct fz_fiber *self, uint64_t set)
{
	self->sig.handlers_run = 0;
	self->sig.suspended = true;
	atomic_signal_fence(memory_order_seq_cst);
	note(self, set);
}

/* End the wait. Run the handlers of other signals that came for this wait: the fiber does not wait for them any more. */
static void leave(struct fz_fiber *self)
{
	self->sig.suspended = false;
	/* relaxed: only this thread writes or reads it. */
	atomic_fetch_and_explicit(&self->pending, ~FZ_SIGNAL_HANDLED, memory_order_relaxed);
	note(self, 0);
	fz_signal_run_pending(self);
}

void fz_signal_wait_interrupted(struct fz_fiber *self)
{
	note(self, 0);
}

int fz_signal_wait(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info,
		   fz_nsec deadline)
{
	enum fz_why why;
	int sig;

	set &= ~(FZ_SIGNALS_OF_LIBC | fz_signal_bit(SIG_KILL) | fz_signal_bit(SIG_STOP));
	if (fz_cancel_requested(self))
		fz_host.test_cancel();
	sig = take_any(self, set, ret_info);
	if (sig || deadline == 0)
		return sig ? sig : -EAGAIN;
	begin(self, set);
	while (!(sig = take_and_tell(self, set, ret_info))) {
		if (self->sig.handlers_run) {
			sig = -EINTR;
			break;
		}
		why = fz_sleep(self, FZ_FOR_SIGNAL, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL);
		if (why == FZ_WHY_CANCEL) {
			leave(self);
			fz_host.test_cancel();
			begin(self, set);
		} else if (why == FZ_WHY_TIMEOUT) {
			sig = take_and_tell(self, set, ret_info);
			sig = sig ? sig : -EAGAIN;
			break;
		}
	}
	leave(self);
	return sig;
}

void fz_sigwait_after_fork(void)
{
	__builtin_memset(waits.waiters, 0, sizeof(waits.waiters));
	atomic_store_explicit(&waits.set, 0, memory_order_relaxed);
}
