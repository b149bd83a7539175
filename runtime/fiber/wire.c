/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/wire.h"

#include <linux/prctl.h>

#include "runtime/base/die.h"
#include "runtime/base/probe.h"
#include "runtime/fiber/cputime.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal.h"

/*
 * Go on on another kernel thread, if one can be had now; call it until the kernel thread is the
 * right one.  Returns false after too many vain tries, which *tries counts.  In the runtime.
 */
static bool change_carrier(struct fz_fiber *self, int *tries)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC);
	const int most = 1000;

	if (fz_sched_move(self))
		return true;
	fz_leave_runtime(self);
	fz_announce(self);
	if (fz_carrier_start())
		++*tries;
	if (*tries)
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	fz_enter_runtime(self);
	return *tries < most;
}

bool fz_fiber_leave_leader(struct fz_fiber *self)
{
	const int leader = (int)fz_sys_getpid();
	bool moved = true;
	int tries = 0;

	fz_spawner_turn_begin(self);
	fz_enter_runtime(self);
	while (moved && self->kind == FZ_KIND_FIBER && self->carrier->tid == leader)
		moved = change_carrier(self, &tries);
	fz_leave_runtime(self);
	fz_spawner_turn_end(self);
	return moved;
}

/* With its turn. */
static bool wire(struct fz_fiber *self, const char *why)
{
	struct fz_carrier *c;
	bool moved;
	int tries = 0;

	fz_enter_runtime(self);
	/*
	 * The fiber must not be wired to the process's first kernel thread: locks that main()
	 * took before there were fibers contain its tid, and when it ended, /proc/self would
	 * be a zombie's.  Nor to a kernel thread on which another thread has made a process,
	 * because the kernel may tell that process when the kernel thread ends.  Nor, if another
	 * can be had, to one with requests in flight, because they would be late.
	 */
	while (!self->thread.is_main && !fz_carrier_may_end(self->carrier)) {
		if (tries && !fz_carrier_is_bound(self->carrier))
			break;
		moved = change_carrier(self, &tries);
		/* A handler has wired it meanwhile. */
		if (!moved || self->kind != FZ_KIND_FIBER) {
			fz_leave_runtime(self);
			return moved;
		}
	}
	c = self->carrier;
	self->thread.wired_why = why;
	FZ_PROBE3(wire, self->thread.tid, c->tid, why);
	if (fz_trace_on())
		fz_trace_wire(self);
	fz_cputime_wire(self);
	fz_sched_give_up(self);
	if (fz_signal_wire(self))
		fz_monitor_follow_mask();
	fz_syscall2(__NR_set_robust_list, (long)self->thread.robust_list, 3 * sizeof(void *));
	fz_syscall2(__NR_prctl, PR_SET_NAME, (long)self->thread.name);
	fz_carrier_take_record(c, self->tcb);
	fz_leave_runtime(self);
	if (FZ_UNLIKELY(fz_verbose))
		fz_say("thread %d (%s) becomes a kernel thread: %s", self->thread.tid,
		       self->thread.is_main && !*self->thread.name ? "main" : self->thread.name, why);
	return true;
}

bool fz_fiber_try_wire_for(struct fz_fiber *self, const char *why)
{
	bool wired = true;

	if (self->kind != FZ_KIND_FIBER)
		return true;
	fz_count_wired(why);
	fz_counting_outcome(self->carrier, FZ_OUTCOME_WIRED);
	fz_spawner_turn_begin(self);
	/* A handler may have wired it meanwhile. */
	if (self->kind == FZ_KIND_FIBER)
		wired = wire(self, why);
	fz_spawner_turn_end(self);
	return wired;
}

void fz_fiber_wire_main(struct fz_fiber *self, const char *why)
{
	FZ_ASSERT(self->carrier->tid == (int)fz_sys_getpid());
	fz_count_wired(why);
	fz_counting_outcome(self->carrier, FZ_OUTCOME_WIRED);
	/* It takes no turn: waiting for one could move it to another kernel thread. */
	wire(self, why);
}

void fz_fiber_wire_for(struct fz_fiber *self, const char *why)
{
	if (!fz_fiber_try_wire_for(self, why))
		fz_die("a thread needs a kernel thread of its own, and none can be made: "
		       "no memory, or too many threads (ulimit -u)");
}
