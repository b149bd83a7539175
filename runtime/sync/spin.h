/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_SPIN_H
#define FZ_RUNTIME_SYNC_SPIN_H

/*
 * runtime/sync/spin.h - libc's spin locks, private or shared between processes: one word, and no
 * waiter to wake.  A thread that spins for long lets other fibers run, since one of them holds the
 * lock.
 */

#include "runtime/fiber/fiber.h"

struct fz_spin {
	_Atomic int word;	/* FZ_SPIN_FREE; anything else is held */
};

static inline bool fz_spin_try(struct fz_spin *s)
{
	int free_ = FZ_SPIN_FREE;

	/* acquire: pairs with fz_spin_unlock(). */
	return atomic_compare_exchange_strong_explicit(&s->word, &free_, FZ_SPIN_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void fz_spin_unlock(struct fz_spin *s)
{
	/* release: pairs with fz_spin_try(). */
	atomic_store_explicit(&s->word, FZ_SPIN_FREE, memory_order_release);
}

/* Any thread; a fiber lets other fibers run meanwhile. */
void fz_spin_lock_slowly(struct fz_spin *s);

#endif
