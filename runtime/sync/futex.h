/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_FUTEX_H
#define FZ_RUNTIME_SYNC_FUTEX_H

/*
 * runtime/sync/futex.h - futex(2) as programs call it.
 *
 *	who waits			where
 *	a fiber, private futex		in the lot (runtime/sync/lot.h)
 *	a fiber, shared futex		in the kernel, by a request on the ring; where
 *					it has no such request, by the call, announced
 *	anybody else, inline futex	in the kernel
 *	instructions, libc itself
 *
 * So one private word may have waiters in both places.  Who wakes n asks the lot
 * first, since that is cheap, and the kernel for the rest; every 64th wake-up of a
 * thread asks the kernel first, lest a word that always has fibers waiting starves
 * the others.  In each place the order is that of arrival; between the two there
 * is none, and a kernel with its priorities promises none.
 *
 * Requeueing moves the waiters of either place within it.
 *
 * Priority-inheriting operations name the owner by the kernel's tid: the fiber is
 * wired, and the kernel does the rest.
 */

#include "runtime/fiber/fiber.h"

/*
 * The system call: its arguments, a value or -errno.  self is the calling fiber,
 * outside the runtime, or NULL for any other thread.  May park.  Async-signal-safe
 * unless it waits.
 */
long fz_futex(struct fz_fiber *self, uint32_t *word, int op, uint32_t value,
	      long timeout_or_value2, uint32_t *word2, uint32_t value3);

#endif
