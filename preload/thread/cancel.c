/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/cancel.c - pthread_cancel. A waiting thread sees the cancellation in its wait
 * (runtime/sched/park.h); a running one is interrupted by the monitor (runtime/signal/nudge.c).
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "runtime/base/host.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/* Cancel a native or wired thread: libc cancels it, and if the library has put it to sleep, wake it. */
static int cancel_kernel_thread(pthread_t thread)
{
	struct fz_fiber *target = fz_fiber_of_handle(thread), *self = fz_self();
	int err;

	/* seq_cst: pairs with fz_wait_arm(). Stored before libc's call, which may end the caller. */
	atomic_store_explicit(&target->cancel.sent, true, memory_order_seq_cst);
	err = fz_real.pthread_cancel(thread);
	if (fz_runtime_runs())
		fz_signal_guard_libc();
	if (err)
		return err;
	fz_enter_runtime(self);
	fz_wake_cancelled(target);
	fz_leave_runtime(self);
	return 0;
}

/*
 * Have libc cancel the monitor, which ignores that. There are two reasons: libc installs its handler
 * of SIGCANCEL only when it cancels a thread for the first time; and whether libc sends a signal to
 * the monitor, which is in no blocking call of libc, tells how libc cancels (fz_signal_learn_cancel).
 */
static void cancel_monitor(void)
{
	unsigned long handle;

	if (FZ_LIKELY(fz_monitor_is_cancelled()))
		return;
	handle = fz_monitor_handle();
	fz_real.pthread_cancel(handle);
	fz_signal_guard_libc();
	fz_monitor_set_cancelled();
}

/*
 * libc marks the thread as cancelled; the library finds out whether the thread can act on that
 * now.
 */
FZ_EXPORT int pthread_cancel(pthread_t thread)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread), *self;
	const int canceled = 8;		/* glibc's bit: CANCELED of runtime/sched/cancel.c */
	uint32_t life;
	bool woken;

	fz_enter(FZ_SYM_pthread_cancel);
	if (!fz_is_fiber(fiber) || fiber->kind == FZ_KIND_WIRED)
		return cancel_kernel_thread(thread);
	life = atomic_load_explicit(&fiber->thread.life, memory_order_acquire);
	if (life & FZ_LIFE_FREE)
		return fz_leave_pthread(-ESRCH);
	if (life & FZ_LIFE_ENDED)
		return 0;
	self = fz_self();
	if (fiber != self) {
		/*
		 * seq_cst: pairs with fz_wait_arm(). The library sets libc's mark itself: libc
		 * would signal an asynchronously cancellable thread by its tid, which is virtual.
		 */
		atomic_fetch_or_explicit(fz_tcb_cancelhandling(fiber->tcb), canceled,
					 memory_order_seq_cst);
		atomic_store_explicit(&fiber->cancel.sent, true, memory_order_seq_cst);
		fz_enter_runtime(self);
		woken = fz_wake_cancelled(fiber);
		fz_leave_runtime(self);
		/* The fiber may be in a call of libc that it does not leave by itself. */
		if (!woken) {
			cancel_monitor();
			fz_signal_undelivered();
		}
		return 0;
	}
	/* relaxed: this thread cancels itself, and reads the flag itself. */
	atomic_store_explicit(&fiber->cancel.sent, true, memory_order_relaxed);
	return fz_real.pthread_cancel(thread);
}

void fz_gate_cancel(struct fz_fiber *self)
{
	if (fz_cancel_requested(self))
		fz_host.test_cancel();
}
