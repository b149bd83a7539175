/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_COND_H
#define FZ_RUNTIME_SYNC_COND_H

/*
 * runtime/sync/cond.h - private condition variables in the storage of pthread_cond_t.
 *
 * All zero is the static initialiser.  flags is one of the places where versions of
 * glibc keep their own (preload/sync/cond.c), with the same bits, so that their
 * pthread_cond_init() initialises ours.
 */

#include "runtime/sync/mutex.h"

struct fz_cond {
	_Atomic uint32_t sequence;	/* changed by each signal; waited for */
	/* Between their look at it and their return, times two; 1: destroy waits. */
	_Atomic uint32_t waiters;
	uint32_t unused[7];
	_Atomic uint32_t flags;
};

enum {
	FZ_COND_SHARED = 1,
	FZ_COND_MONOTONIC = 2,
};

/*
 * Any thread; may park; reports a cancellation request, with the mutex held
 * again.  Returns 0, -ETIMEDOUT, -EPERM (from the mutex), or -ECANCELED.
 */
int fz_cond_wait(struct fz_cond *c, struct fz_mutex *m, fz_nsec deadline);

void fz_cond_wake(struct fz_cond *c, uint32_t n);

/* Nobody to wake. */
static inline bool fz_cond_is_idle(struct fz_cond *c)
{
	/* seq_cst: pairs with fz_cond_enter(). */
	return !atomic_load_explicit(&c->waiters, memory_order_seq_cst);
}

/*
 * The same in steps, for a mutex that is not ours: enter, unlock it, sleep with what
 * enter returned, lock it.  leave instead of sleep if it cannot be unlocked.
 * sleep returns 0, -ETIMEDOUT, -ECANCELED.
 */
uint32_t fz_cond_enter(struct fz_cond *c);
int fz_cond_sleep(struct fz_cond *c, uint32_t entered, fz_nsec deadline);
void fz_cond_leave(struct fz_cond *c);

/* Waits until woken threads have left it.  May park. */
void fz_cond_destroy(struct fz_cond *c);

#endif
