/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_LOCK_H
#define FZ_RUNTIME_BASE_LOCK_H

/*
 * runtime/base/lock.h - the runtime's own mutual exclusion between kernel threads.
 *
 * Three states on a private futex.  A lock is held for a few dozen instructions,
 * never across fz_park() and never while user code runs.  The holder has
 * fz_fiber.in_runtime set, so that no signal handler of the program can run
 * on top of the holder and ask for the lock again.
 *
 * Ranks, outermost first (a holder may only take a lock further down):
 *	signals of the process  >  registry (fiber list, signal accounting)  >  stack slabs  >
 *	parking-lot bucket, watch stripe, pin bucket  >  timer heap  >  carrier lists  >  run queue
 *	>  limit of descriptors
 */

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

struct fz_lock {
	_Atomic uint32_t word;	/* 0: free, 1: held, 2: held, and threads may wait for it */
};

static inline bool fz_lock_try(struct fz_lock *l)
{
	uint32_t free_ = 0;

	/* acquire: pairs with the release in fz_lock_release(). */
	return atomic_compare_exchange_strong_explicit(&l->word, &free_, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void fz_lock_acquire(struct fz_lock *l)
{
	if (FZ_LIKELY(fz_lock_try(l)))
		return;
	for (int spin = 0; spin < 100; spin++) {
		fz_cpu_relax();
		/* relaxed: a hint that another try may succeed. */
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
		    fz_lock_try(l))
			return;
	}
	/* acquire: as in fz_lock_try(). */
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		fz_sys_futex_wait(&l->word, 2, NULL);
}

static inline void fz_lock_release(struct fz_lock *l)
{
	/* release: pairs with the acquires in fz_lock_try() and fz_lock_acquire(). */
	if (FZ_UNLIKELY(atomic_exchange_explicit(&l->word, 0,
						 memory_order_release) == 2))
		fz_sys_futex_wake(&l->word, 1);
}

#endif
