/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_LOT_H
#define FZ_RUNTIME_SYNC_LOT_H

/*
 * runtime/sync/lot.h - the parking lot: threads that wait for a 32-bit word.
 *
 * Private futexes in user space: waiters are found by the word's address and woken in the order of
 * their arrival.  Waiters with FZ_LOT_STARVES, or with a higher real-time priority
 * (fz_priority_heed()), are woken first.  Fibers park; native threads sleep on a futex of their own.
 * Fibers and native threads may wait for one word.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/sched/park.h"

/*
 * Wait flag against starvation.  A free lock goes to the thread that asks first, which with one
 * processor is always the thread that has just released it.  A waiter with this flag is woken
 * before all others of its priority, and the fiber that wakes it lets other fibers run.
 */
enum { FZ_LOT_STARVES = 1 << 8 };

/* Wait flag: what the word belongs to (runtime/sched/park.h).  Without it, a futex. */
#define FZ_LOT_FOR(kind) ((unsigned)(kind) << 16)

/*
 * Call this before the second and each further wait in a row for one object.  Returns FZ_LOT_STARVES
 * if the first of these waits began more than 100 us ago, else 0.  *since is the time when the first
 * wait began; if *since is 0, it is set to now.
 */
unsigned fz_lot_patience(fz_nsec *since);

/*
 * Sleep if *word == expected.  flags: FZ_WAIT_SIGNAL, FZ_WAIT_CANCEL, FZ_LOT_*.  Outside the
 * runtime; may park; does not act on a cancellation request but reports it.  Returns 0 (woken),
 * -EAGAIN (the word differs), -ETIMEDOUT, -EINTR, -ECANCELED. A wait that ends otherwise than by a
 * wake-up consumes no wake-up.
 */
int fz_lot_wait_bits(const _Atomic uint32_t *word, uint32_t expected, uint32_t bits,
		     fz_nsec deadline, unsigned flags);

static inline int fz_lot_wait(const _Atomic uint32_t *word, uint32_t expected,
			      fz_nsec deadline, unsigned flags)
{
	return fz_lot_wait_bits(word, expected, UINT32_MAX, deadline, flags);
}

/*
 * Like fz_lot_wait_bits(), for a condition that is not one word: sleep if must_wait(key, arg).
 * must_wait is called under the lock that wakers take, so it may only read.  Callers must check the
 * condition again after a wake-up.  A thread makes the condition false, and then wakes the waiters of
 * key; in between the object may be freed and its memory used again, so the wake-up may reach a thread
 * that waits for something else.
 */
int fz_lot_wait_while(const void *key, bool (*must_wait)(const void *key, uint32_t arg),
		      uint32_t arg, fz_nsec deadline, unsigned flags);

/*
 * Take a lock whose word is 0: free, 1: held, 2: held and somebody may wait.  what: a mutex, or a
 * lock inside libc.  A signal's handler runs, and the wait goes on.  Returns 0 or -ETIMEDOUT.
 */
int fz_lot_lock(_Atomic uint32_t *lock, enum fz_waits_for what, fz_nsec deadline);

/*
 * Wake up to n waiters of word that wait for one of the bits.  advance: a word to increment first, as
 * in fz_lot_advance(), or NULL.  In or outside the runtime, any thread; from a signal handler only
 * outside.  Returns how many were woken.
 */
uint32_t fz_lot_wake_advancing(const void *word, _Atomic uint32_t *advance, uint32_t n,
			       uint32_t bits);

static inline uint32_t fz_lot_wake_bits(const void *word, uint32_t n, uint32_t bits)
{
	return fz_lot_wake_advancing(word, NULL, n, bits);
}

static inline uint32_t fz_lot_wake(const void *word, uint32_t n)
{
	return fz_lot_wake_bits(word, n, UINT32_MAX);
}

/*
 * Increment *word, and then do what fz_lot_wake() does.  The word is changed under the lock under which
 * waiters look at it.  Only this function may change it, and no atomic increment is needed.
 */
static inline uint32_t fz_lot_advance(_Atomic uint32_t *word, uint32_t n)
{
	return fz_lot_wake_advancing(word, word, n, UINT32_MAX);
}

/*
 * Like fz_lot_wake(), for a fiber that must neither wait for a processor nor change its kernel
 * thread: the caller takes no processor, and other carriers run the woken fibers.  Outside the
 * runtime.
 */
uint32_t fz_lot_wake_staying(const void *word, uint32_t n);

/*
 * If the first waiter of word is a parked fiber, wake that fiber and return it.  The caller must switch
 * to it, because it is in no run queue.  Otherwise wake no waiter and return NULL.  In the runtime.
 */
struct fz_fiber *fz_lot_take(const void *word);

struct fz_lot_requeue {
	uint32_t wake, move;		/* limits, set by the caller */
	uint32_t woken, moved;		/* set by the call */
};

/*
 * In one step, wake the first order->wake waiters for `from`, and let the next order->move waiters
 * wait for `to` instead.  If expected is given and *from != *expected, do nothing and return
 * false.  Outside the runtime, any thread.
 */
bool fz_lot_requeue(const _Atomic uint32_t *from, const _Atomic uint32_t *to,
		    const uint32_t *expected, struct fz_lot_requeue *order);

void fz_lot_after_fork(void);

#endif
