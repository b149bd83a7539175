/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/exec.c - gives pending signals back to the kernel: for threads that are no
 * fibers, and for the program that exec starts. exec resets all handlers and keeps what is on its
 * way to the caller: a nudge that came then would end the new program.
 */
#include "runtime/fiber/wire.h"
#include "runtime/signal/signal_internal.h"

#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"

static _Atomic int executing;		/* threads in exec */

bool fz_signal_hand_back(struct fz_signode *node)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&node->info;
	int code = head->code;

	if (!fz_signode_settle(node)) {
		fz_signode_free(node);
		return true;
	}
	if (code == CODE_TKILL || (code >= 0 && code < CODE_MAX))
		head->code = CODE_HANDED_BACK - code;
	if (fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), node->sig, (long)head)) {
		head->code = code;
		return false;
	}
	fz_signode_free(node);
	return true;
}

static bool send_to_own_thread(const void *info, int sig)
{
	return fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), fz_sys_gettid(), sig,
			   (long)info) == 0;
}

bool fz_signal_to_kernel(struct fz_signode *node)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&node->info;

	if (!node->directed)
		return fz_signal_hand_back(node);
	if (head->code == CODE_QUEUE)
		head->error = FZ_SIGNAL_DIRECTED;
	if (!send_to_own_thread(head, node->sig))
		return false;
	fz_signode_free(node);
	return true;
}

/* Append the thread's pending signals, in order, to a list. */
static void take_own(struct fz_fiber *self, struct fz_signode **end)
{
	struct fz_signode *node;

	while ((node = fz_sigqueue_take(self, ~(uint64_t)0))) {
		*end = node;
		end = &node->next;
	}
}

static void keep_in_kernel(int by)
{
	/* relaxed: fz_monitor_update_mask() waits until the monitor has seen the count. */
	atomic_fetch_add_explicit(&executing, by, memory_order_relaxed);
	fz_monitor_update_mask();
}

struct fz_carrier *fz_signal_before_exec(struct fz_fiber *self)
{
	struct fz_signode *pending, *next, **end = &pending;
	struct fz_carrier *barred = NULL;

	keep_in_kernel(1);
	fz_enter_runtime(self);
	/* relaxed: fz_monitor_update_mask() has waited until the monitor left its handlers. */
	if (atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed))
		fz_signal_route_arrived();
	fz_signal_process_lock();
	pending = fz_signal_pending_take(~(uint64_t)0);
	fz_signal_process_unlock();
	fz_leave_runtime(self);
	while (*end)
		end = &(*end)->next;
	take_own(self, end);
	/*
	 * Wire the caller, so that it keeps its kernel thread, whatever handlers run before the
	 * call: the signals that are sent to the kernel thread below stay with it if exec fails.
	 * Bar nudges: one would end the new program.
	 */
	fz_fiber_try_wire_for(self, "it executes a program");
	if (self->carrier && fz_signal_bar_nudges(self->carrier))
		barred = self->carrier;
	for (; pending; pending = next) {
		next = pending->next;
		/* A filter forbids it: better without its siginfo than lost. */
		if (fz_signode_settle(pending) && !send_to_own_thread(&pending->info, pending->sig))
			fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), pending->sig);
		fz_signode_free(pending);
	}
	return barred;
}

void fz_signal_after_exec(struct fz_carrier *c)
{
	if (c)
		fz_signal_allow_nudges(c);
	keep_in_kernel(-1);
}

bool fz_signal_executing(void)
{
	return FZ_UNLIKELY(atomic_load_explicit(&executing, memory_order_relaxed));
}

void fz_signal_exec_after_fork(void)
{
	atomic_store_explicit(&executing, 0, memory_order_relaxed);
}
