/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_CANCEL_H
#define FZ_RUNTIME_SCHED_CANCEL_H

/*
 * runtime/sched/cancel.h - is a thread cancelled, and must it act on that now?
 *
 * libc's word in the TCB (cancelhandling) has the request, the state and the type; libc's own
 * functions change it.  fz_fiber.cancel says whether a request was ever sent, whether libc's
 * handler has looked where the thread is, whether the thread defers cancellation, and whether it
 * is in a system call that a cancellation interrupts.
 */

#include "runtime/fiber/fiber.h"

/* glibc's bits of cancelhandling for a thread that ends, and a cancelled one. */
enum { FZ_CANCEL_EXITING = 16, FZ_CANCEL_CANCELED = 8 | 4 };

/* There is a request that the thread must act on at its next cancellation point. */
bool fz_cancel_requested(const struct fz_fiber *self);

/* The calling thread's type of cancellation is PTHREAD_CANCEL_ASYNCHRONOUS. */
bool fz_cancel_type_is_asynchronous(const struct fz_fiber *self);

/* There is a request that the thread must act on at once, without a cancellation point. */
bool fz_cancel_is_asynchronous(const struct fz_fiber *fiber);

/*
 * There is a request that interrupts what the thread is doing: fz_cancel_is_asynchronous() holds,
 * or the thread is between fz_cancel_begin_call() and fz_cancel_end_call().
 */
bool fz_cancel_interrupts(const struct fz_fiber *fiber);

/*
 * There is a request, and libc's handler of SIGCANCEL has not yet looked where the thread is.
 * The thread may be blocked in a call of libc's that libc cancels by where the signal finds
 * the thread (fz_signal_learn_cancel()).
 */
bool fz_cancel_is_unseen(const struct fz_fiber *fiber);

/* The calling thread never acts on a request from now on. */
void fz_cancel_disable(struct fz_fiber *self);

/*
 * The thread has been cancelled (true even if it cannot act on the request), or has called
 * pthread_exit.
 */
bool fz_cancel_is_leaving(const struct fz_fiber *fiber);

/*
 * For a call that undoes what it has begun before it acts on a cancellation.  Between defer and
 * undefer the thread is not cancelled asynchronously; undefer acts on a request that came
 * in between.  Outside the runtime.
 */
void fz_cancel_defer(struct fz_fiber *self);
void fz_cancel_undefer(struct fz_fiber *self);

/*
 * For a system call that may block the carrier: between begin and end the monitor interrupts the
 * thread, again and again, while there is a request.  So the system call ends, with EINTR if it has
 * done nothing yet, and the caller acts on the request then: no handler does, because the call may
 * have moved data.  end takes what begin returned.  Outside the runtime.
 */
bool fz_cancel_begin_call(struct fz_fiber *self);
void fz_cancel_end_call(struct fz_fiber *self, bool changed);

#endif
