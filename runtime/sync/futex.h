/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_FUTEX_H
#define FZ_RUNTIME_SYNC_FUTEX_H

/*
 * runtime/sync/futex.h - futex(2) as programs call it.
 *
 *	waiter				where it waits
 *	a fiber, private futex		in the lot (runtime/sync/lot.h)
 *	a fiber, shared futex		in the kernel, by a request on the ring; if the
 *					ring has no such request, by the announced call
 *	any other thread; inline	in the kernel
 *	futex instructions; libc
 *
 * So one private word may have waiters in the lot and in the kernel.  A thread that wakes n
 * waiters looks in the lot first, because that is cheap, and then in the kernel.  Every 64th
 * wake-up of a thread looks in the kernel first, so that the kernel's waiters do not starve on a word
 * for which fibers always wait.  In each of the two places waiters are woken in the order of their
 * arrival.  A waiter in one place may be woken before an earlier one in the other; natively there is
 * no promise either, because the kernel heeds priorities.
 *
 * Requeueing moves the waiters in the lot within the lot, and those in the kernel within the
 * kernel.
 *
 * Priority-inheriting operations name the owner by its kernel tid.  So they wire the calling fiber,
 * and are made as the real call.
 */

#include "runtime/fiber/fiber.h"

/*
 * futex(2) with its arguments; returns a value or -errno.  self is the calling fiber, outside the
 * runtime, or NULL for any other thread.  May park.  Async-signal-safe unless it waits.
 */
long fz_futex(struct fz_fiber *self, uint32_t *word, int op, uint32_t value,
	      long timeout_or_value2, uint32_t *word2, uint32_t value3);

/*
 * Wait as futex_wait() of Linux 6.7 does: like FUTEX_WAIT_BITSET, but restarted after a handler also if
 * there is a timeout.  when: an absolute time, or NULL.  Returns 0 or -errno.  From a fiber, outside the
 * runtime; parks.
 */
long fz_futex_wait(struct fz_fiber *self, uint32_t *word, uint32_t expected, uint32_t bits, bool shared,
		   const struct __kernel_timespec *when, bool by_realtime);

#endif
