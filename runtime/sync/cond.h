/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_COND_H
#define FZ_RUNTIME_SYNC_COND_H

/*
 * runtime/sync/cond.h - private condition variables in the storage of pthread_cond_t.  Their waiters are
 * in the tables of lot.c, by the address of `sequence`.
 *
 * All zero is the static initialiser.  Versions of glibc keep their flags in different words
 * (preload/sync/cond.c); `flags` is one of these words, with glibc's bits, so that glibc's
 * pthread_cond_init() initialises this struct, too.
 */

#include "runtime/sync/mutex.h"

struct fz_cond {
	/* incremented by each signal; the word that waiters wait for */
	_Atomic uint32_t sequence;
	/*
	 * Number of threads between fz_cond_enter() and fz_cond_leave(), times two; plus 1 if
	 * fz_cond_destroy() waits.
	 */
	_Atomic uint32_t waiters;
	uint32_t unused[7];
	_Atomic uint32_t flags;
};

enum {
	FZ_COND_SHARED = 1,
	FZ_COND_MONOTONIC = 2,
};

/*
 * Any thread; may park.  Does not act on a cancellation request but reports it, with the mutex
 * held again.  Returns 0, -ETIMEDOUT, -EPERM (from the mutex), or -ECANCELED.
 */
int fz_cond_wait(struct fz_cond *c, struct fz_mutex *m, fz_nsec deadline);

void fz_cond_wake(struct fz_cond *c, uint32_t n);

/* Has c no waiter to wake? */
static inline bool fz_cond_is_idle(struct fz_cond *c)
{
	/* seq_cst: pairs with fz_cond_enter(). */
	return !atomic_load_explicit(&c->waiters, memory_order_seq_cst);
}

/*
 * fz_cond_wait() in steps, for a mutex that libc keeps: fz_cond_enter(), unlock the mutex,
 * fz_cond_sleep() with what fz_cond_enter() returned, lock the mutex.  fz_cond_sleep() returns 0,
 * -ETIMEDOUT or -ECANCELED.  If the mutex cannot be unlocked, call fz_cond_leave() instead.
 */
uint32_t fz_cond_enter(struct fz_cond *c);
int fz_cond_sleep(struct fz_cond *c, uint32_t entered, fz_nsec deadline);
void fz_cond_leave(struct fz_cond *c);

/* Wait until no thread is between fz_cond_enter() and fz_cond_leave(), where threads access c.  May park. */
void fz_cond_destroy(struct fz_cond *c);

#endif
