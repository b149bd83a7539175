/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/mask.c - the signals that each fiber blocks, that its kernel thread blocks,
 * and that all fibers block.
 */
#include <asm/errno.h>

#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal_internal.h"

/* Guarded by the registry's lock. */
static struct {
	uint32_t blocked_by[FZ_SIGNALS + 1];
	uint64_t blocked_by_any;	/* those for which blocked_by is not 0 */
	uint32_t threads;
	_Atomic uint64_t blocked_by_all;
} masks;

static void publish_blocked_by_all(void)
{
	uint64_t all = masks.threads ? 0 : FZ_SIGNALS_ALL;

	for (uint64_t rest = masks.blocked_by_any; rest; rest &= rest - 1)
		if (masks.blocked_by[__builtin_ctzll(rest) + 1] == masks.threads)
			all |= rest & -rest;
	all &= ~FZ_SIGNALS_OF_LIBC;
	if (all == atomic_load_explicit(&masks.blocked_by_all, memory_order_relaxed))
		return;
	/*
	 * relaxed: a thread that must know learns of it by a mutex, a futex or a poke of the
	 * monitor, which orders it.
	 */
	atomic_store_explicit(&masks.blocked_by_all, all, memory_order_relaxed);
	fz_monitor_poke();
}

static void count(uint64_t mask, int by)
{
	for (; mask; mask &= mask - 1) {
		uint32_t *blocked_by = &masks.blocked_by[__builtin_ctzll(mask) + 1];

		*blocked_by += (uint32_t)by;
		if (*blocked_by)
			masks.blocked_by_any |= mask & -mask;
		else
			masks.blocked_by_any &= ~(mask & -mask);
	}
}

void fz_signal_thread_started(struct fz_fiber *f)
{
	masks.threads++;
	f->sig.mask_counted = f->mask;
	count(f->mask, 1);
	/*
	 * A new thread that blocks what all others block changes nothing. Otherwise the set can
	 * only shrink; the monitor may learn of that late.
	 */
	if (masks.threads == 1 ||
	    (atomic_load_explicit(&masks.blocked_by_all, memory_order_relaxed) & ~f->mask))
		publish_blocked_by_all();
}

void fz_signal_thread_ended(struct fz_fiber *f)
{
	masks.threads--;
	count(f->sig.mask_counted, -1);
	publish_blocked_by_all();
}

uint64_t fz_signal_blocked_by_all(void)
{
	if (fz_signal_executing())
		return FZ_SIGNALS_ALL;
	/* relaxed: see publish_blocked_by_all(). */
	return atomic_load_explicit(&masks.blocked_by_all, memory_order_relaxed);
}

uint64_t fz_signal_left_to_kernel(void)
{
	if (fz_signal_executing())
		return FZ_SIGNALS_ALL;
	return fz_signal_blocked_by_all() & ~fz_signal_waited_for();
}

struct acceptance {
	void (*change)(void *);
	void *arg;
	uint64_t before, after;		/* answer: fz_signal_left_to_kernel() */
};

static bool change_locked(struct fz_fiber *first, void *arg)
{
	struct acceptance *a = arg;

	(void)first;
	a->before = fz_signal_left_to_kernel();
	a->change(a->arg);
	a->after = fz_signal_left_to_kernel();
	return true;
}

bool fz_signal_change_accepted(void (*change)(void *), void *arg)
{
	struct acceptance a = { .change = change, .arg = arg };

	fz_fiber_each(change_locked, &a);
	return FZ_UNLIKELY(a.before != a.after);
}

static void leave_count(void *arg)
{
	struct fz_fiber *self = arg;

	fz_signal_thread_ended(self);
	self->mask = self->sig.mask_counted = 0;
	self->kind = FZ_KIND_WIRED;
}

bool fz_signal_wire(struct fz_fiber *self)
{
	return fz_signal_change_accepted(leave_count, self);
}

static bool count_all(struct fz_fiber *first, void *arg)
{
	bool *others = arg;

	(void)first;
	*others = fz_fiber_alive() > masks.threads;
	return true;
}

bool fz_signal_others_exist(void)
{
	bool others = true;

	fz_fiber_each(count_all, &others);
	return others;
}

void fz_signal_load_mask(struct fz_carrier *c, uint64_t mask)
{
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	c->kernel_mask = mask;
}

bool fz_signal_mask_is_known(const struct fz_fiber *self)
{
	uint64_t mask;

	fz_sys_sigmask(HOW_SETMASK, NULL, &mask);
	return mask == self->carrier->kernel_mask;
}

struct mask_change {
	struct fz_fiber *self;
	uint64_t to;
};

static void recount(void *arg)
{
	struct mask_change *change = arg;
	uint64_t from = change->self->sig.mask_counted;

	count(from & ~change->to, -1);
	count(change->to & ~from, 1);
	change->self->sig.mask_counted = change->to;
	publish_blocked_by_all();
}

void fz_signal_apply_mask(struct fz_fiber *self, uint64_t mask)
{
	if (self->mask == mask)
		return;
	/* In user code the carrier stays the same, and no other thread writes these. */
	self->mask = mask;
	self->carrier->kernel_mask = mask;
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
}

int fz_signal_set_mask(struct fz_fiber *self, int how, const uint64_t *set,
		       uint64_t *ret_old)
{
	uint64_t old = self->mask, unblocked;
	struct mask_change change = { self, old };

	if (set) {
		switch (how) {
		case HOW_BLOCK: change.to = old | *set; break;
		case HOW_UNBLOCK: change.to = old & ~*set; break;
		case HOW_SETMASK: change.to = *set; break;
		default: return -EINVAL;
		}
		change.to &= ~(FZ_SIGNALS_OF_LIBC | fz_signal_bit(SIG_KILL) |
			       fz_signal_bit(SIG_STOP));
	}
	/*
	 * An unchanged mask may still have to be counted: the mask of a running handler is not
	 * counted, but a handler that sets a mask and then leaves by a jump keeps that mask.
	 */
	if (change.to != old || (set && change.to != self->sig.mask_counted)) {
		/* Block the signals before they are counted as blocked. */
		fz_signal_apply_mask(self, old | change.to);
		fz_enter_runtime(self);
		/*
		 * A signal that all fibers block from now on must stay pending in the kernel, for
		 * sigwait, so the monitor must not take it. A signal that not all fibers block any
		 * more must be taken by the monitor, or nobody would receive it.
		 */
		if (fz_signal_change_accepted(recount, &change))
			fz_monitor_follow_mask();
		fz_leave_runtime(self);
		/* Unblock outside the runtime, so that handlers of pending signals run here. */
		fz_signal_apply_mask(self, change.to);
		unblocked = old & ~change.to;
		/*
		 * If a standard signal is pending both for the thread and for the process, the
		 * first pass leaves the process's one; the thread's is handled on leaving the
		 * runtime. The second pass takes the process's.
		 */
		for (int i = 0; i < 2 && unblocked && FZ_UNLIKELY(fz_signal_has_come(unblocked));
		     i++) {
			fz_enter_runtime(self);
			fz_signal_take_from_process(self, unblocked);
			fz_leave_runtime(self);
		}
		fz_signal_run_pending(self);
	}
	if (ret_old)
		*ret_old = old;
	return 0;
}

bool fz_signal_swap_mask(struct fz_fiber *self, uint64_t mask, struct fz_mask_swap *ret_old)
{
	ret_old->suspended = self->sig.suspended;
	ret_old->mask = self->mask;
	ret_old->during = mask;
	self->sig.handlers_run = 0;
	fz_signal_mark(self);
	self->sig.mask_to_restore = self->mask;
	self->sig.restores_mask = true;
	self->sig.suspended = true;
	atomic_signal_fence(memory_order_seq_cst);
	fz_signal_set_mask(self, HOW_SETMASK, &mask, NULL);
	return self->sig.handlers_run != 0;
}

void fz_signal_unswap_mask(struct fz_fiber *self, const struct fz_mask_swap *old)
{
	bool restored = !self->sig.restores_mask && self->mask != old->during;

	self->sig.restores_mask = false;
	self->sig.suspended = old->suspended;
	atomic_fetch_and_explicit(&self->pending, ~FZ_SIGNAL_HANDLED, memory_order_relaxed);
	if (FZ_UNLIKELY(self->kind != FZ_KIND_FIBER))
		/* A handler has wired the fiber. */
		fz_sys_sigmask(HOW_SETMASK, &old->mask, NULL);
	else if (!restored)
		fz_signal_set_mask(self, HOW_SETMASK, &old->mask, NULL);
}

void fz_signal_recount(struct fz_fiber *self, uint64_t counted)
{
	struct mask_change change = { self, counted };

	/*
	 * The kernel thread still blocks what the handler blocked. A signal that the fiber sent
	 * to its own kernel thread now would arrive only after the handler has returned, perhaps
	 * for another fiber. handler_ends forbids to send one.
	 */
	self->sig.handler_ends = true;
	fz_enter_runtime(self);
	/* The monitor's mask must follow, as in fz_signal_set_mask(). */
	if (fz_signal_change_accepted(recount, &change))
		fz_monitor_follow_mask();
	fz_leave_runtime(self);
	self->sig.handler_ends = false;
}

void fz_signal_adopt_mask(struct fz_fiber *self, uint64_t mask)
{
	self->mask = mask;
	fz_signal_recount(self, mask);
}

void fz_signal_masks_after_fork(void)
{
	__builtin_memset(&masks, 0, sizeof(masks));
}
