/* SPDX-License-Identifier: MIT */
/*
 * preload/timer.c - timer_create whose signals are for one thread.
 *
 * The kernel must know that thread: if it is the caller, as nearly always, it becomes
 * a kernel thread for good.  For another fiber the signals go to the process.
 */
#include "preload/gate.h"
#include "runtime/signal.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

FZ_EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *ret_timer)
{
	struct fz_fiber *self = fz_self();
	struct sigevent changed;

	fz_enter(FZ_SYM_timer_create);
	if (!fz_is_fiber(self) || !event || event->sigev_notify != SIGEV_THREAD_ID)
		return fz_real.timer_create(clock, event, ret_timer);
	changed = *event;
	if (event->sigev_notify_thread_id == self->tid) {
		fz_fiber_wire(self);
		changed.sigev_notify_thread_id = fz_fiber_kernel_tid(self);
	} else if (fz_fiber_by_tid(event->sigev_notify_thread_id)) {
		changed.sigev_notify = SIGEV_SIGNAL;
	}
	return fz_real.timer_create(clock, &changed, ret_timer);
}
