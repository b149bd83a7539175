/* SPDX-License-Identifier: MIT */
#include "runtime/sync/cond.h"

#include <asm/errno.h>

#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/timer.h"
#include "runtime/sync/lot.h"

enum { DESTROYING = 1, WAITER = 2 };

uint32_t fz_cond_enter(struct fz_cond *c)
{
	/*
	 * relaxed: the mutex orders.  A thread that signals after the caller has unlocked the mutex
	 * changes the sequence that was read here, and finds that there is a waiter (seq_cst: pairs
	 * with fz_cond_is_idle()).
	 */
	uint32_t sequence = atomic_load_explicit(&c->sequence, memory_order_relaxed);

	atomic_fetch_add_explicit(&c->waiters, WAITER, memory_order_seq_cst);
	return sequence;
}

void fz_cond_leave(struct fz_cond *c)
{
	/* release: the caller's last access to c; pairs with fz_cond_destroy(). */
	if (FZ_UNLIKELY(atomic_fetch_sub_explicit(&c->waiters, WAITER, memory_order_release) ==
			(WAITER | DESTROYING)))
		fz_lot_wake(&c->waiters, UINT32_MAX);
}

int fz_cond_sleep(struct fz_cond *c, uint32_t entered, fz_nsec deadline)
{
	struct fz_fiber *self = fz_self();
	int ret;

	/*
	 * After a signal's handler the wait goes on, unless fz_cond_wake() has changed the
	 * sequence meanwhile.
	 */
	do {
		ret = fz_lot_wait(&c->sequence, entered, deadline,
				  FZ_WAIT_CANCEL | FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_COND));
	} while (ret == -EINTR || (ret == -ETIMEDOUT && fz_clock_goes_on(self, &deadline)));
	fz_cond_leave(c);
	return ret == -EAGAIN ? 0 : ret;
}

int fz_cond_wait(struct fz_cond *c, struct fz_mutex *m, fz_nsec deadline)
{
	struct fz_fiber *self = fz_self();
	uint32_t entered, count;
	int ret;

	/*
	 * Defer cancellation: when cleanup handlers run, the mutex must be locked, and the count of
	 * waiters must be right.
	 */
	fz_cancel_defer(self);
	entered = fz_cond_enter(c);
	ret = fz_mutex_unlock_whole(m, &count);
	if (ret == 0) {
		ret = fz_cond_sleep(c, entered, deadline);
		fz_mutex_lock_again(m, count);
	} else {
		fz_cond_leave(c);
	}
	fz_cancel_undefer(self);
	return ret;
}

void fz_cond_wake(struct fz_cond *c, uint32_t n)
{
	if (fz_cond_is_idle(c))
		return;
	fz_lot_advance(&c->sequence, n);
}

void fz_cond_destroy(struct fz_cond *c)
{
	/* acquire: pairs with the release in fz_cond_leave(). */
	uint32_t waiters = atomic_fetch_or_explicit(&c->waiters, DESTROYING,
						    memory_order_acquire) | DESTROYING;

	while (waiters != DESTROYING) {
		fz_lot_wait(&c->waiters, waiters, FZ_FOREVER,
			    FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_COND));
		waiters = atomic_load_explicit(&c->waiters, memory_order_acquire);
	}
	/* relaxed: no other thread uses c any more. */
	atomic_store_explicit(&c->waiters, 0, memory_order_relaxed);
}
