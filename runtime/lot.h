/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_LOT_H
#define FZ_RUNTIME_LOT_H

/*
 * runtime/lot.h - the parking lot: threads that wait for a 32-bit word.
 *
 * The semantics of private futexes, in user space: waiters are keyed by address
 * and woken in the order in which they came.  Fibers park, native threads sleep
 * on a futex of their own; both may wait for the same word.
 */

#include "runtime/fiber.h"

/*
 * Sleep unless *word != expected.  flags: FZ_WAIT_SIGNAL, FZ_WAIT_CANCEL.
 * Outside the runtime; may park; a cancellation request is reported, not acted on.
 * Returns 0 (woken), -EAGAIN (the word differs), -ETIMEDOUT, -EINTR, -ECANCELED.
 * Anything but a wake-up leaves the wake-ups to others.
 */
int fz_lot_wait(const _Atomic uint32_t *word, uint32_t expected, fz_nsec deadline,
		unsigned flags);

/*
 * The same for a condition that is not one word: sleep if must_wait(key, arg), which
 * is asked under the lock that wakers take, so it only looks.  Who makes it false
 * and then wakes the key touches the object no more, which may be gone by then.
 */
int fz_lot_wait_while(const void *key, bool (*must_wait)(const void *key, uint32_t arg),
		      uint32_t arg, fz_nsec deadline, unsigned flags);

/*
 * Wake up to n waiters.  In or outside the runtime, any thread; from a handler
 * only outside.  Returns how many.
 */
uint32_t fz_lot_wake(const void *word, uint32_t n);

void fz_lot_after_fork(void);

#endif
