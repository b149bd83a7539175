/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_CANCEL_H
#define FZ_RUNTIME_SCHED_CANCEL_H

/*
 * runtime/sched/cancel.h - is a thread cancelled, and must it act on that now?
 *
 * libc's word in the TCB (cancelhandling) has the request, the state and the type, and libc's own
 * functions change it; fz_fiber.cancel says whether it is worth a look, and what else is known.
 */

#include "runtime/fiber/fiber.h"

/* glibc's bits of cancelhandling for a thread that ends, and a cancelled one. */
enum { FZ_CANCEL_EXITING = 16, FZ_CANCEL_CANCELED = 8 | 4 };

/* A request to cancel that the thread must act on at a cancellation point. */
bool fz_cancel_requested(const struct fz_fiber *self);

/* The calling thread's type of cancellation is PTHREAD_CANCEL_ASYNCHRONOUS. */
bool fz_cancel_type_is_asynchronous(const struct fz_fiber *self);

/* A request, and it need not wait for a cancellation point. */
bool fz_cancel_is_asynchronous(const struct fz_fiber *fiber);

/*
 * A request that libc's calls have not been interrupted for, or not noticeably: what it
 * is blocked in may be one that libc makes cancellable by its place.
 */
bool fz_cancel_is_unseen(const struct fz_fiber *fiber);

/* The calling thread is never to act on a request. */
void fz_cancel_disable(struct fz_fiber *self);

/* It is cancelled, even if it cannot act on that, or has called pthread_exit. */
bool fz_cancel_is_leaving(const struct fz_fiber *fiber);

/*
 * Around a call that undoes what it has begun before it acts on a cancellation: until
 * undefer the thread is not cancelled asynchronously, and if it was meanwhile, then
 * there.  Outside the runtime.
 */
void fz_cancel_defer(struct fz_fiber *self);
void fz_cancel_undefer(struct fz_fiber *self);

/*
 * Around a system call that may block the carrier: cancellation ends it, as it does in
 * libc's own.  end takes what begin returned.  Outside the runtime.
 */
bool fz_cancel_begin_call(struct fz_fiber *self);
void fz_cancel_end_call(struct fz_fiber *self, bool changed);

#endif
