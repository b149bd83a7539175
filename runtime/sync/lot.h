/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_LOT_H
#define FZ_RUNTIME_SYNC_LOT_H

/*
 * runtime/sync/lot.h - the parking lot: threads that wait for a 32-bit word.
 *
 * The semantics of private futexes, in user space: waiters are keyed by address
 * and woken in the order in which they came, but for FZ_LOT_STARVES.  Fibers park,
 * native threads sleep on a futex of their own; both may wait for the same word.
 */

#include "runtime/fiber/fiber.h"

/*
 * What is free goes to whoever asks first, and who has just let go of it is there
 * already: with one processor, always.  Who waits with this flag is the next to be woken,
 * and a fiber that wakes it gives way.
 */
enum { FZ_LOT_STARVES = 1 << 8 };

/*
 * For the second and every further wait in a row for the same thing: FZ_LOT_STARVES once
 * they have lasted for long, else 0.  *since is when the first began; if 0, it is set.
 */
unsigned fz_lot_patience(fz_nsec *since);

/*
 * Sleep unless *word != expected.  flags: FZ_WAIT_SIGNAL, FZ_WAIT_CANCEL, FZ_LOT_STARVES.
 * Outside the runtime; may park; a cancellation request is reported, not acted on.
 * Returns 0 (woken), -EAGAIN (the word differs), -ETIMEDOUT, -EINTR, -ECANCELED.
 * Anything but a wake-up leaves the wake-ups to others.
 */
int fz_lot_wait_bits(const _Atomic uint32_t *word, uint32_t expected, uint32_t bits,
		     fz_nsec deadline, unsigned flags);

static inline int fz_lot_wait(const _Atomic uint32_t *word, uint32_t expected,
			      fz_nsec deadline, unsigned flags)
{
	return fz_lot_wait_bits(word, expected, UINT32_MAX, deadline, flags);
}

/*
 * The same for a condition that is not one word: sleep if must_wait(key, arg), which
 * is asked under the lock that wakers take, so it only looks.  Who makes it false
 * and then wakes the key touches the object no more, which may be gone by then, and may
 * wake in vain who has come since: callers look again.
 */
int fz_lot_wait_while(const void *key, bool (*must_wait)(const void *key, uint32_t arg),
		      uint32_t arg, fz_nsec deadline, unsigned flags);

/*
 * Take a lock whose word is 0: free, 1: held, 2: held and somebody may wait.  Handles
 * signals and goes on.  Returns 0 or -ETIMEDOUT.
 */
int fz_lot_lock(_Atomic uint32_t *lock, fz_nsec deadline);

/*
 * Wake up to n waiters that have one of the bits.  In or outside the runtime, any
 * thread; from a handler only outside.  Returns how many.
 */
uint32_t fz_lot_wake_bits(const void *word, uint32_t n, uint32_t bits);

static inline uint32_t fz_lot_wake(const void *word, uint32_t n)
{
	return fz_lot_wake_bits(word, n, UINT32_MAX);
}

/*
 * The same by a fiber that must not wait for a processor meanwhile, nor go on on another
 * kernel thread: it takes none, and whom it wakes is for others to run.  Outside the
 * runtime.
 */
uint32_t fz_lot_wake_staying(const void *word, uint32_t n);

/*
 * Wake the first waiter, if it is a fiber that sleeps, for the caller to switch to: it is in no
 * queue.  NULL, and nobody woken, otherwise.  In the runtime.
 */
struct fz_fiber *fz_lot_take(const void *word);

struct fz_lot_requeue {
	uint32_t wake, move;		/* at most so many */
	uint32_t woken, moved;		/* set by the call */
};

/*
 * In one step, wake the first waiters for `from` and let those after them wait for
 * `to` instead.  With expected, only if *from == *expected, or else it returns
 * false.  Outside the runtime, any thread.
 */
bool fz_lot_requeue(const _Atomic uint32_t *from, const _Atomic uint32_t *to,
		    const uint32_t *expected, struct fz_lot_requeue *order);

void fz_lot_after_fork(void);

#endif
