/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/send.c - sends a signal to one thread; drops the pending signals of a number that
 * is ignored from now on.
 */
#include "runtime/signal/signal_internal.h"

#include <asm/errno.h>

#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"

static _Atomic uint64_t signalfd_set;

bool fz_signal_takes_no_notice(int sig)
{
	struct fz_action a = fz_signal_action_get(sig);

	return (uintptr_t)a.handler == 1 || (!a.handler && fz_signal_ignored_by_default(sig));
}

void fz_signal_discard(int sig)
{
	struct fz_fiber *self = fz_self();

	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire) ||
	    !fz_signal_takes_no_notice(sig))
		return;
	/* The kernel has dropped its pending signals of this number: a thread must not wait for their arrival. */
	fz_signal_note_arrival(sig);
	fz_enter_runtime(self);
	fz_sigqueue_discard(sig);
	/* Empty the inbox: a later signal would be merged with a void one there, and lost. */
	fz_signal_route_arrived();
	/* Drop the void signals that are pending for the process. */
	fz_signal_process_lock();
	if (fz_signal_process_pending() & fz_signal_bit(sig))
		fz_signal_pending_take(0);
	fz_signal_process_unlock();
	fz_leave_runtime(self);
	/* Void nodes hid the pending signals behind them: threads must look for these now. */
	fz_signal_undelivered();
}

void fz_signal_note_signalfd(uint64_t set)
{
	atomic_fetch_or_explicit(&signalfd_set, set, memory_order_relaxed);
}

/*
 * A signalfd sees only signals pending in the kernel: leave sig there if a signalfd reads it and
 * no thread accepts it.
 */
static bool leave_to_signalfd(int sig)
{
	uint64_t bit = fz_signal_bit(sig);

	return atomic_load_explicit(&signalfd_set, memory_order_relaxed) & bit &&
	       fz_signal_left_to_kernel() & bit;
}

bool fz_signal_adopt_pending(struct fz_fiber *self, uint64_t set)
{
	static const struct __kernel_timespec none;
	struct fz_siginfo info;
	int sig;

	/* The kernel takes a thread's own signal before one of the process's. */
	sig = (int)fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none,
			       sizeof(set));
	return sig > 0 && fz_signal_send(self, sig, &info, false) == 0;
}

int fz_signal_send(struct fz_fiber *f, int sig, const struct fz_siginfo *info, bool limited)
{
	struct fz_fiber *self = fz_self();
	uint64_t bit = fz_signal_bit(sig);
	struct fz_signode *node;

	if (sig == SIG_KILL || sig == SIG_STOP) {
		fz_signal_default(sig);
		return 0;
	}
	/* f and all other fibers block sig: let it be pending in the kernel, for the signalfd. */
	if (f->mask & bit && leave_to_signalfd(sig) && !(f->sig.sigwait_set & bit)) {
		const struct fz_siginfo_head *head = (const void *)info;

		if (head->code != CODE_QUEUE)
			return (int)fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
		return (int)fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), sig, (long)info);
	}
	if (!((f->mask | f->sig.sigwait_set) & bit)) {
		if (fz_signal_takes_no_notice(sig))
			return 0;
		if (!fz_signal_action_get(sig).handler) {
			fz_signal_default(sig);
			return 0;
		}
	}
	node = fz_signode_new(sig, info, true, limited);
	if (!node)
		return -EAGAIN;
	fz_enter_runtime(self);
	fz_signal_deliver(f, node);
	fz_leave_runtime(self);
	if (f != self)
		fz_monitor_poke();
	return 0;
}
