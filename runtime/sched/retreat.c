/* SPDX-License-Identifier: MIT */
#include "runtime/sched/retreat.h"

#include <asm/errno.h>

#include "runtime/base/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched_internal.h"

/* Does the processor still use its ring? */
static bool uses_ring(struct fz_processor *p)
{
	return p->backend.ring.in_flight ||
	       (!fz_epoll_active(&p->backend.epoll) &&
		(owner_load(p) & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING);
}

/* Returns false if no processor uses its ring any more. */
static bool drive_out(void)
{
	bool any = false;

	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		if (!uses_ring(p))
			continue;
		any = true;
		/*
		 * This cancels requests in flight.  Requests that are only queued are dropped by
		 * the processor's carrier, after the kick.
		 */
		fz_ring_cancel_all(&p->backend.ring);
		fz_backend_kick(&p->backend);
	}
	return any;
}

void fz_retreat_from_ring(struct fz_fiber *self, const char *why, int error)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC / 10);
	const int most = 100000;

	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire) ||
	    fz_backend_kind() != FZ_BACKEND_RING)
		return;
	fz_backend_lose_ring(why, error);
	fz_monitor_poke();
	/* A caller in the runtime is a handler that interrupted the runtime: it must not wait. */
	if (atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	fz_announce(self);
	for (int tries = 0; tries < most && drive_out(); tries++)
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	fz_announce_end(self);
}

void fz_retreat_before_faults(const char *why)
{
	fz_backend_avoid_ring();
	fz_retreat_from_ring(fz_self(), why, 0);
}
