/* SPDX-License-Identifier: MIT */
/*
 * preload/timer.c - timer_create that is for one thread: its signals, or its CPU time.
 *
 * The kernel must know that thread: if it is the caller, as nearly always, it becomes
 * a kernel thread for good.  For another fiber the signals go to the process, and
 * there is no timer on its CPU time.
 */
#include "preload/timer.h"

#include "preload/clock.h"
#include "preload/gate.h"
#include "runtime/signal.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

clockid_t fz_timer_prepare(clockid_t clock, struct sigevent *event)
{
	struct fz_fiber *self = fz_self(), *target = NULL;

	if (!event || event->sigev_notify != SIGEV_THREAD_ID)
		return fz_clock_of_kernel(clock);
	if (event->sigev_notify_thread_id == gettid()) {
		fz_fiber_wire(self);
		target = self;
	} else {
		target = fz_fiber_by_tid(event->sigev_notify_thread_id);
	}
	if (target && target->kind == FZ_KIND_FIBER) {
		event->sigev_notify = SIGEV_SIGNAL;
	} else if (target) {
		if (target->kind == FZ_KIND_WIRED)
			event->sigev_notify_thread_id = fz_fiber_kernel_tid(target);
		/* relaxed: the kernel sends none before. */
		if (event->sigev_signo >= 1 && event->sigev_signo <= FZ_SIGNALS)
			atomic_fetch_or_explicit(&target->timer_signals,
						 fz_signal_bit(event->sigev_signo),
						 memory_order_relaxed);
	}
	return fz_clock_of_kernel(clock);
}

FZ_EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *ret_timer)
{
	struct sigevent changed;

	fz_enter(FZ_SYM_timer_create);
	if (event)
		changed = *event;
	clock = fz_timer_prepare(clock, event ? &changed : NULL);
	return fz_real.timer_create(clock, event ? &changed : NULL, ret_timer);
}
