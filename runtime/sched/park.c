/* SPDX-License-Identifier: MIT */
#include "runtime/sched/park.h"

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/base/probe.h"
#include "runtime/base/time.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/timer.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/signal.h"

struct fz_ticket fz_wait_arm(struct fz_fiber *self, unsigned flags)
{
	/* relaxed: no thread fires an idle wait, and only this thread ends a wait. */
	uint64_t old = atomic_load_explicit(&self->wait, memory_order_relaxed);
	uint64_t number = (old >> FZ_WAIT_NUMBER_SHIFT) + 1;

	FZ_ASSERT((old & FZ_WAIT_STATE_MASK) == FZ_WAIT_IDLE);
	/*
	 * release: pairs with the wakers' loads.  The barrier that pairs with fz_wake_any() comes
	 * later: in fz_wait_context_saved() for a fiber that parks, in look_for_requests() for
	 * other threads.
	 */
	atomic_store_explicit(&self->wait,
			      number << FZ_WAIT_NUMBER_SHIFT | flags | FZ_WAIT_ARMED,
			      memory_order_release);
	return (struct fz_ticket){ self, number };
}

static enum fz_why end_wait(struct fz_fiber *self)
{
	/* acquire: pairs with the release of the waker. */
	uint64_t old = atomic_load_explicit(&self->wait, memory_order_acquire);
	uint64_t idle = old >> FZ_WAIT_NUMBER_SHIFT << FZ_WAIT_NUMBER_SHIFT;

	/* acquire: a waker may fire the wait at the last moment. */
	while ((old & FZ_WAIT_STATE_MASK) != FZ_WAIT_FIRED &&
	       !atomic_compare_exchange_weak_explicit(&self->wait, &old, idle,
						      memory_order_acquire,
						      memory_order_acquire))
		continue;
	/* relaxed: no other thread writes a fired wait, and late wakers compare the number. */
	atomic_store_explicit(&self->wait, idle, memory_order_relaxed);
	return (old & FZ_WAIT_WHY_MASK) >> FZ_WAIT_WHY_SHIFT;
}

void fz_wait_disarm(struct fz_fiber *self)
{
	end_wait(self);
}

/* A function of its own, so that fire() saves no registers for it while nobody traces. */
__attribute__((cold, noinline)) static void run_traced(struct fz_fiber *fiber, enum fz_why why,
						       struct fz_fiber **ret_run)
{
	fz_trace_wake(fiber, why);
	if (ret_run)
		*ret_run = fiber;
	else
		fz_sched_ready(fiber);
}

/*
 * End the wait whose word is `old`.  If ret_run is NULL, a parked fiber is queued; otherwise it is
 * stored in *ret_run, and the caller must run it.  Returns false if the word has changed.  Inlined,
 * because each wake-up takes this way.
 */
__attribute__((always_inline)) static inline bool fire(struct fz_fiber *fiber, uint64_t old,
						       enum fz_why why, struct fz_fiber **ret_run)
{
	uint64_t fired = old >> FZ_WAIT_NUMBER_SHIFT << FZ_WAIT_NUMBER_SHIFT |
			 FZ_WAIT_FIRED | (uint64_t)why << FZ_WAIT_WHY_SHIFT;

	/* Read now: a native thread may be gone as soon as its wait is fired. */
	bool parks = fiber->kind == FZ_KIND_FIBER && !(old & FZ_WAIT_BLOCKS);

	/*
	 * acq_rel: acquire pairs with the release of PARKED, so that the carrier that
	 * runs the fiber sees its saved context; release publishes what the
	 * caller wrote before waking.
	 */
	if (!atomic_compare_exchange_strong_explicit(&fiber->wait, &old, fired,
						     memory_order_acq_rel,
						     memory_order_relaxed))
		return false;
	if ((old & FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED) {
		if (FZ_UNLIKELY(fz_call_counters != NULL))
			fz_counting_wakes(fz_self(), fiber);
		FZ_PROBE2(wake, fiber->thread.tid, why);
		if (fz_trace_on())
			run_traced(fiber, why, ret_run);
		else if (ret_run)
			*ret_run = fiber;
		else
			fz_sched_ready(fiber);
	} else if (!parks) {
		fz_sys_futex_wake(&fiber->wait, 1);
	}
	return true;
}

static bool can_fire(uint64_t word)
{
	uint64_t state = word & FZ_WAIT_STATE_MASK;

	return state == FZ_WAIT_ARMED || state == FZ_WAIT_PARKED;
}

/* Use the ticket: fire() its wait, unless the wait is over.  Inlined, as fire() is. */
__attribute__((always_inline)) static inline bool wake(struct fz_ticket ticket, enum fz_why why,
						       struct fz_fiber **ret_run)
{
	for (;;) {
		/* relaxed: fire() orders. */
		uint64_t old = atomic_load_explicit(&ticket.fiber->wait,
						    memory_order_relaxed);

		if (old >> FZ_WAIT_NUMBER_SHIFT != ticket.number || !can_fire(old))
			return false;
		if (fire(ticket.fiber, old, why, ret_run))
			return true;
	}
}

bool fz_wake(struct fz_ticket ticket, enum fz_why why)
{
	return wake(ticket, why, NULL);
}

bool fz_wake_done(struct fz_ticket ticket)
{
	return wake(ticket, FZ_WHY_DONE, NULL);
}

struct fz_fiber *fz_wake_to_run(struct fz_ticket ticket, enum fz_why why)
{
	struct fz_fiber *run = NULL;

	wake(ticket, why, &run);
	return run;
}

static bool has_signal_due(const struct fz_fiber *f)
{
	/* seq_cst: this load must come after the load of the wait in wake_if(). */
	return atomic_load_explicit(&f->pending, memory_order_seq_cst) &
	       (~f->mask | f->sig.sigwait_set) & ~FZ_SIGNAL_POLICY;
}

/* End the wait if its word has one of these flags; if `due`, only if a signal is due, too. */
static bool wake_if(struct fz_fiber *fiber, uint64_t flags, enum fz_why why, bool due)
{
	for (;;) {
		/* seq_cst: pairs with fz_wait_arm(). */
		uint64_t old = atomic_load_explicit(&fiber->wait, memory_order_seq_cst);

		if (!can_fire(old) || !(old & flags) || old & FZ_WAIT_UNINTERRUPTIBLE)
			return false;
		/* A fiber that has armed a new wait since has already taken the handled signal from `pending`. */
		if (due && !has_signal_due(fiber))
			return false;
		if (fire(fiber, old, why, NULL))
			return true;
	}
}

bool fz_wake_any(struct fz_fiber *fiber, enum fz_why why)
{
	return wake_if(fiber, why == FZ_WHY_SIGNAL ? FZ_WAIT_SIGNAL : FZ_WAIT_CANCEL, why, false);
}

bool fz_wake_due(struct fz_fiber *fiber)
{
	return wake_if(fiber, FZ_WAIT_SIGNAL, FZ_WHY_SIGNAL, true);
}

bool fz_wait_is_parked(const struct fz_fiber *fiber)
{
	/* acquire: pairs with fz_wait_context_saved(); the caller sees what the fiber did. */
	return (atomic_load_explicit(&fiber->wait, memory_order_acquire) &
		FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED;
}

bool fz_wake_cancelled(struct fz_fiber *fiber)
{
	const uint64_t wanted = fz_cancel_is_asynchronous(fiber) ? ~(uint64_t)0 : FZ_WAIT_CANCEL;

	return wake_if(fiber, wanted, FZ_WHY_CANCEL, false);
}

/* End the wait if a signal or a cancellation request came before fz_wake_any() could see it. */
static void look_for_requests(struct fz_fiber *self)
{
	/* seq_cst: with the store of the wait, pairs with the publication before fz_wake_any(). */
	atomic_thread_fence(memory_order_seq_cst);
	fz_wake_due(self);
	if (fz_cancel_requested(self))
		fz_wake_cancelled(self);
}

/* From ARMED to PARKED, or back.  Returns false if a waker was first. */
static bool change(struct fz_fiber *fiber, uint64_t from, uint64_t to)
{
	/*
	 * seq_cst, of which release pairs with the acquire in fire(), and acquire is for the way back to ARMED.
	 * The full order pairs with a thread that publishes a request and then calls fz_wake_any(): either
	 * fz_wake_any() finds the wait, or the loads after this find the request.
	 */
	return atomic_compare_exchange_strong_explicit(&fiber->wait, &from, to,
						       memory_order_seq_cst,
						       memory_order_relaxed);
}

/*
 * fz_wake_any() may have come too early for this wait, and left its request unanswered: look for
 * requests.  While the wait is ARMED again, no other thread runs the fiber.
 */
__attribute__((cold, noinline)) static void look_again(struct fz_fiber *fiber, uint64_t parked)
{
	const uint64_t armed = (parked & ~(uint64_t)FZ_WAIT_STATE_MASK) | FZ_WAIT_ARMED;

	if (!change(fiber, parked, armed))
		return;
	look_for_requests(fiber);
	if (!change(fiber, armed, parked))
		fz_sched_ready(fiber);
}

void fz_wait_context_saved(struct fz_fiber *fiber)
{
	uint64_t old = atomic_load_explicit(&fiber->wait, memory_order_relaxed);
	uint64_t parked = (old & ~(uint64_t)FZ_WAIT_STATE_MASK) | FZ_WAIT_PARKED;

	if (FZ_UNLIKELY((old & FZ_WAIT_STATE_MASK) != FZ_WAIT_ARMED ||
			!change(fiber, old, parked)))
		/* A waker has fired the wait before the context was saved: the fiber is runnable. */
		fz_sched_ready(fiber);
	/* seq_cst: see change().  Another carrier may run the fiber by now, but its record stays readable. */
	else if (FZ_UNLIKELY((parked & FZ_WAIT_SIGNAL &&
			      atomic_load_explicit(&fiber->pending, memory_order_seq_cst)) ||
			     atomic_load_explicit(&fiber->cancel.sent, memory_order_seq_cst)))
		look_again(fiber, parked);
}

static bool fired(struct fz_fiber *self)
{
	/* relaxed: end_wait() acquires. */
	return (atomic_load_explicit(&self->wait, memory_order_relaxed) &
		FZ_WAIT_STATE_MASK) == FZ_WAIT_FIRED;
}

/*
 * Sleep in the kernel; the futex is the low half of the wait's word.  Not inlined, nor is
 * watch_clock(), so that fz_park() saves few registers.
 */
__attribute__((noinline)) static enum fz_why block(struct fz_fiber *self, fz_nsec deadline)
{
	look_for_requests(self);
	/* Only for `fiberize ps`: this deadline is in no timer heap. */
	self->timer.deadline = deadline;
	while (!fired(self)) {
		uint32_t word = (uint32_t)atomic_load_explicit(&self->wait,
							       memory_order_relaxed);
		struct __kernel_timespec ts;
		fz_nsec now = deadline == FZ_FOREVER ? 0 : fz_now();
		long err;

		if ((word & FZ_WAIT_STATE_MASK) == FZ_WAIT_FIRED)
			break;
		if (deadline <= now) {
			fz_wake((struct fz_ticket){ self,
				atomic_load_explicit(&self->wait, memory_order_relaxed) >>
					FZ_WAIT_NUMBER_SHIFT }, FZ_WHY_TIMEOUT);
			break;
		}
		ts = fz_timespec(deadline - now);
		err = FZ_UNLIKELY(deadline == self->clock.deadline) ?
			fz_clock_wait(&self->wait, word, self->clock.at) :
			fz_sys_futex_wait(&self->wait, word, deadline == FZ_FOREVER ? NULL : &ts);
		if (err == -EINTR)
			look_for_requests(self);
		else if (err == -ETIMEDOUT)
			deadline = 0;
	}
	return end_wait(self);
}

/* Wait without a timer, for which there is no memory: yield until the deadline has passed. */
__attribute__((noinline)) static enum fz_why watch_clock(struct fz_fiber *self, fz_nsec deadline,
							 uint64_t number)
{
	look_for_requests(self);
	while (!fired(self)) {
		if (fz_now() >= deadline)
			fz_wake((struct fz_ticket){ self, number }, FZ_WHY_TIMEOUT);
		else
			fz_sched_yield(self);
	}
	return end_wait(self);
}

enum fz_why fz_park(struct fz_fiber *self, fz_nsec deadline)
{
	uint64_t number;

	fz_lock_check_none_held("fz_park");
	if (self->kind != FZ_KIND_FIBER || self->call.blocks)
		return block(self, deadline);
	if (deadline != FZ_FOREVER && !fired(self)) {
		number = atomic_load_explicit(&self->wait, memory_order_relaxed) >>
			 FZ_WAIT_NUMBER_SHIFT;
		if (!fz_timer_add(fz_processor_of(self), self, deadline, number))
			return watch_clock(self, deadline, number);
	}
	if (!fired(self)) {
		FZ_PROBE4(park, self->thread.tid, self->call.waits_for, self->waits.object, deadline);
		fz_sched_park(self);
	}
	if (deadline != FZ_FOREVER)
		fz_timer_remove(self);
	return end_wait(self);
}

void fz_submit_and_look(struct fz_processor *p)
{
	bool kicked = false;

	fz_backend_submit(&p->backend);
	if (!fz_backend_has_completions(&p->backend))
		return;
	fz_backend_reap(&p->backend, UINT32_MAX, &kicked);
	if (!kicked)
		return;
	/* seq_cst: as in note_kick().  The calling fiber may go on, so another carrier must look at the queues. */
	atomic_store_explicit(&p->kicked, false, memory_order_seq_cst);
	fz_sched_kick();
}

void fz_leave_after(struct fz_fiber *self, enum fz_why why)
{
	fz_leave_runtime(self);
	if (FZ_LIKELY(why == FZ_WHY_DONE))
		fz_signal_catch_up(self);
}

enum fz_why fz_sleep(struct fz_fiber *self, enum fz_waits_for what, fz_nsec deadline,
		     unsigned flags)
{
	enum fz_why why;

	fz_enter_runtime(self);
	fz_waits_for(self, what, NULL);
	fz_wait_arm(self, flags);
	why = fz_park(self, deadline);
	fz_leave_runtime(self);
	return why;
}

void fz_pause(struct fz_fiber *self, fz_nsec pause)
{
	const struct __kernel_timespec time = fz_timespec(pause);

	if (self->kind == FZ_KIND_FIBER)
		fz_sleep(self, FZ_FOR_TIME, fz_now() + pause, FZ_WAIT_UNINTERRUPTIBLE);
	else
		fz_syscall2(__NR_nanosleep, (long)&time, 0);
}

int fz_sleep_until(struct fz_fiber *self, fz_nsec deadline)
{
	for (;;) {
		fz_signal_mark(self);
		switch (fz_sleep(self, FZ_FOR_TIME, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL)) {
		case FZ_WHY_TIMEOUT:
			return 0;
		case FZ_WHY_CANCEL:
			fz_host.test_cancel();
			break;
		default:
			return -EINTR;
		}
	}
}

bool fz_sched_give_way(struct fz_fiber *self)
{
	/* relaxed: only this thread and its handlers write in_runtime. */
	if (self->kind != FZ_KIND_FIBER || self->call.blocks ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return false;
	fz_enter_runtime(self);
	fz_sched_yield(self);
	fz_leave_runtime(self);
	return true;
}

void fz_sched_poll_and_yield(struct fz_fiber *self)
{
	if (self->call.blocks)
		return;
	fz_enter_runtime(self);
	/* relaxed: this carrier reads it, in the pick() of fz_sched_yield(). */
	atomic_store_explicit(&self->carrier->processor->poll_wanted, true,
			      memory_order_relaxed);
	fz_sched_yield(self);
	fz_leave_runtime(self);
}

void fz_sched_yield_to(struct fz_fiber *self, struct fz_processor *to)
{
	struct fz_carrier *c = self->carrier;

	c->yields_to = to;
	if (!fz_sched_yield(self))
		c->yields_to = NULL;
}
