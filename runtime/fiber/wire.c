/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/wire.h"

#include <linux/prctl.h>

#include "runtime/base/die.h"
#include "runtime/base/host.h"
#include "runtime/base/probe.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/robust.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal.h"

/*
 * Try to move the fiber to another kernel thread, which fits.  Call it until the kernel thread is the right
 * one.  Returns false after too many vain tries, which *tries counts.  In the runtime.
 */
static bool change_carrier(struct fz_fiber *self, bool (*fits)(struct fz_carrier *), int *tries)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC);
	const int most = 1000;

	if (fz_sched_move(self, fits))
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

static bool is_leader(struct fz_carrier *c)
{
	return c->tid == (int)fz_sys_getpid();
}

bool fz_fiber_leave_leader(struct fz_fiber *self)
{
	bool moved = true;
	int tries = 0;

	fz_spawner_turn_begin(self);
	fz_enter_runtime(self);
	while (moved && self->kind == FZ_KIND_FIBER && is_leader(self->carrier))
		moved = change_carrier(self, fz_carrier_may_end, &tries);
	fz_leave_runtime(self);
	fz_spawner_turn_end(self);
	return moved;
}

/* The fiber has the turn (fz_spawner_turn_begin). */
static bool wire(struct fz_fiber *self, const char *why, bool (*fits)(struct fz_carrier *))
{
	struct fz_carrier *c;
	bool moved;
	int tries = 0;

	fz_enter_runtime(self);
	/*
	 * The fiber must not be wired to a kernel thread of these kinds.  The process's first:
	 * locks that main() took before there were fibers contain its tid, and after its end
	 * /proc/self would be a zombie's.  One on which another thread has made a process: the
	 * kernel may send that process a signal when the kernel thread ends.  One with requests in
	 * flight, if another can be had: such requests would complete late.
	 */
	while (!(self->thread.is_main && fits == fz_carrier_may_end) && !fits(self->carrier)) {
		if (tries && fits == fz_carrier_may_end && !fz_carrier_is_bound(self->carrier))
			break;
		/* One that is undisturbed is wished for only: do not wait for it. */
		moved = (!tries || fits == fz_carrier_may_end) && change_carrier(self, fits, &tries);
		/* A kind other than FIBER: a handler has wired the fiber meanwhile. */
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

static bool try_wire(struct fz_fiber *self, const char *why, bool (*fits)(struct fz_carrier *))
{
	bool wired = true;

	/* A child of clone(CLONE_VM) is a kernel thread, and its fiber the thread of another process. */
	if (self->kind != FZ_KIND_FIBER || (fz_host.is_in_child && fz_host.is_in_child()))
		return true;
	fz_count_wired(why);
	fz_counting_outcome(self->carrier, FZ_OUTCOME_WIRED);
	fz_spawner_turn_begin(self);
	/* A handler may have wired it meanwhile. */
	if (self->kind == FZ_KIND_FIBER)
		wired = wire(self, why, fits);
	fz_spawner_turn_end(self);
	return wired;
}

bool fz_fiber_try_wire_for(struct fz_fiber *self, const char *why)
{
	return try_wire(self, why, fz_carrier_may_end);
}

bool fz_fiber_wire_undisturbed(struct fz_fiber *self, const char *why)
{
	return try_wire(self, why, fz_carrier_is_undisturbed);
}

void fz_fiber_wire_main(struct fz_fiber *self, const char *why)
{
	FZ_ASSERT(self->carrier->tid == (int)fz_sys_getpid());
	fz_count_wired(why);
	fz_counting_outcome(self->carrier, FZ_OUTCOME_WIRED);
	/* Do not take a turn: waiting for it could move the fiber to another kernel thread. */
	wire(self, why, fz_carrier_may_end);
}

void fz_fiber_wire_for(struct fz_fiber *self, const char *why)
{
	if (!fz_fiber_try_wire_for(self, why))
		fz_die("a thread needs a kernel thread of its own, and none can be made: "
		       "no memory, or too many threads (ulimit -u)");
}

/* The program may wait for the word to learn that the thread has ended. */
static void clear_tid_address(struct fz_fiber *self)
{
	_Atomic int *word = self->thread.tid_address;

	self->thread.tid_address = NULL;
	if (!word || !fz_sys_readable((void *)((uintptr_t)word & ~(uintptr_t)7)))
		return;
	/* As the kernel does it: release, and a wake-up of a shared futex. */
	atomic_store_explicit(word, 0, memory_order_release);
	fz_syscall3(__NR_futex, (long)word, FUTEX_WAKE, 1);
}

void fz_fiber_unwire(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	/* With SIGSETXID unblocked: the thread that holds the lock may wait until this one has answered it. */
	fz_carrier_take_record(c, c->context->tcb);
	fz_signal_load_mask(c, FZ_SIGNALS_ALL);
	fz_robust_release(self, false);
	clear_tid_address(self);
	fz_alt_stack_adopt(self, c);
	fz_cputime_switch(c, self, NULL);
	/* The program may have forbidden the cycle counter to this thread; the carrier reads it. */
	fz_syscall2(__NR_prctl, PR_SET_TSC, PR_TSC_ENABLE);
	self->thread.owns_kernel_state = self->thread.owns_files = false;
	atomic_store_explicit(&self->sig.timer_signals, 0, memory_order_relaxed);
	self->kind = FZ_KIND_FIBER;
	fz_carrier_is_to_end(c);
}
