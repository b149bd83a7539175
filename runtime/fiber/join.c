/* SPDX-License-Identifier: MIT */
/*
 * runtime/fiber/join.c - join, detach and bury a thread that has ended.
 */
#include <asm/errno.h>
#include <linux/futex.h>

#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/pool.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

struct fz_fiber *fz_fiber_take_joiner(struct fz_fiber *self)
{
	return fz_lot_take(&self->thread.life);
}

void fz_fiber_buried(struct fz_fiber *f)
{
	/*
	 * release: the result, for the joiner's acquire; acquire: pairs with
	 * fz_fiber_detach().
	 */
	uint32_t life = atomic_fetch_or_explicit(&f->thread.life, FZ_LIFE_ENDED,
						 memory_order_acq_rel);

	/* A thread that was detached while being joined is freed by the joiner. */
	if ((life & (FZ_LIFE_DETACHED | FZ_LIFE_JOINING | FZ_LIFE_RETIRED)) == FZ_LIFE_DETACHED) {
		/* release: a stale handle finds FREE, not an old life. */
		atomic_store_explicit(&f->thread.life, FZ_LIFE_FREE, memory_order_release);
		fz_pool_put(fz_processor_of(fz_self()), f);
	} else {
		fz_lot_wake(&f->thread.life, 1);
	}
}

/* Free an ended fiber to which no other thread has a right any more. */
static void free_ended(struct fz_fiber *self, struct fz_fiber *f)
{
	bool retired = atomic_load_explicit(&f->thread.life, memory_order_relaxed) & FZ_LIFE_RETIRED;

	/* The main thread and a retired one have no next life. */
	if (f->thread.is_main)
		return;
	/* A retired fiber has no next life: give back the memory of its stack, without the record. */
	if (retired)
		fz_stack_trim(f->mem.stack, (char *)f - 4096);
	/* release: a stale handle finds FREE, not an old life. */
	atomic_store_explicit(&f->thread.life, FZ_LIFE_FREE, memory_order_release);
	if (retired)
		return;
	fz_enter_runtime(self);
	fz_pool_put(fz_processor_or_none(self), f);
	fz_leave_runtime(self);
	if (FZ_UNLIKELY(fz_stack_is_limited()))
		fz_pool_end_one(self);
}

/*
 * f was wired: wait until its kernel thread is gone, as a native join does.  Then the kernel has
 * finished what it does at the end of a thread; for example it has cancelled requests of the
 * program's io_urings, which write to the program's memory.
 */
static void await_kernel_thread(const struct fz_fiber *f)
{
	/*
	 * The kernel wakes only one waiter, hence the timeout; and waiters of a shared futex, hence
	 * FUTEX_WAIT without the private flag.
	 */
	const struct __kernel_timespec a_moment = fz_timespec(FZ_MSEC);

	/* acquire: pairs with the kernel.  If another carrier uses the record by now, f's kernel thread is gone. */
	while (atomic_load_explicit(&f->carrier->in_kernel, memory_order_acquire))
		fz_syscall4(__NR_futex, (long)&f->carrier->in_kernel, FUTEX_WAIT, 1, (long)&a_moment);
}

static int claim_for_join(struct fz_fiber *self, struct fz_fiber *f)
{
	/* acquire: pairs with fz_fiber_buried(). */
	uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

	do {
		if (life & FZ_LIFE_FREE)
			return -ESRCH;
		if (life & FZ_LIFE_DETACHED)
			return -EINVAL;
		/*
		 * Check for a deadlock before JOINING, as glibc does.  It is no deadlock if one of
		 * the two threads is cancelled.
		 */
		if ((f == self || (f->thread.joins == self && !(life & FZ_LIFE_ENDED) &&
				   !fz_cancel_is_leaving(f))) &&
		    !fz_cancel_requested(self))
			return -EDEADLK;
		if (life & FZ_LIFE_JOINING)
			return -EINVAL;
	} while (!atomic_compare_exchange_weak_explicit(
		&f->thread.life, &life, life | FZ_LIFE_JOINING, memory_order_acq_rel,
		memory_order_acquire));
	return 0;
}

int fz_fiber_join(struct fz_fiber *f, fz_nsec deadline, void **ret_result)
{
	struct fz_fiber *self = fz_self();
	int err;

	if (deadline == 0) {
		uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

		if (!(life & (FZ_LIFE_ENDED | FZ_LIFE_FREE | FZ_LIFE_DETACHED)))
			return -EBUSY;
	}
	err = claim_for_join(self, f);
	if (err)
		return err;
	self->thread.joins = f;
	fz_cancel_defer(self);
	for (;;) {
		/* acquire: pairs with fz_fiber_buried(). */
		uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

		if (life & FZ_LIFE_ENDED)
			break;
		err = fz_lot_wait(&f->thread.life, life, deadline,
				  FZ_WAIT_CANCEL | FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_THREAD));
		if (err == -ETIMEDOUT || err == -ECANCELED) {
			self->thread.joins = NULL;
			/*
			 * release: pairs with the next joiner's acquire; acquire: pairs with
			 * fz_fiber_buried(), which leaves the fiber to this joiner if the fiber
			 * was detached meanwhile.
			 */
			life = atomic_fetch_and_explicit(&f->thread.life,
							 ~(uint32_t)FZ_LIFE_JOINING,
							 memory_order_acq_rel);
			if (life & FZ_LIFE_ENDED && life & FZ_LIFE_DETACHED)
				free_ended(self, f);
			fz_cancel_undefer(self);
			return err;
		}
	}
	self->thread.joins = NULL;
	if (ret_result)
		*ret_result = f->thread.result;
	if (FZ_UNLIKELY(f->thread.wired_why != NULL))
		await_kernel_thread(f);
	free_ended(self, f);
	fz_cancel_undefer(self);
	return 0;
}

int fz_fiber_detach(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();
	/* acq_rel, below: pairs with fz_fiber_buried(); exactly one of the two frees f. */
	uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_relaxed);

	do {
		if (life & FZ_LIFE_FREE)
			return -ESRCH;
		if (life & FZ_LIFE_DETACHED)
			return -EINVAL;
	} while (!atomic_compare_exchange_weak_explicit(
		&f->thread.life, &life, life | FZ_LIFE_DETACHED, memory_order_acq_rel,
		memory_order_relaxed));
	/* If f still runs, its end frees it; if a thread is joining it, the joiner does. */
	if (!(life & FZ_LIFE_ENDED) || life & FZ_LIFE_JOINING)
		return 0;
	free_ended(self, f);
	return 0;
}
