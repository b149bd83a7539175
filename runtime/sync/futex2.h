/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_FUTEX2_H
#define FZ_RUNTIME_SYNC_FUTEX2_H

/*
 * runtime/sync/futex2.h - futex_wake(), futex_wait() and futex_requeue() of Linux 6.7, as programs call them by
 * number.
 *
 * They and futex(2) reach the same waiters, so for a private word also the fibers in the lot (futex.h).
 * The kernel looks at the arguments, and its waiters come first.  futex_waitv() waits in the kernel, where
 * each of the calls that wake finds it.
 */

#include "runtime/base/time.h"
#include "runtime/base/uapi.h"
#include "runtime/fiber/fiber.h"

/* Both return a count or -errno.  Any thread, outside the runtime; async-signal-safe. */
long fz_futex2_wake(uint32_t *word, unsigned long bits, int n, unsigned flags);
long fz_futex2_requeue(const struct fz_uapi_futex_waitv *waiters, unsigned flags, int wake, int move);

/* Can fz_futex2_wait() serve a word with these flags?  Else the real call is to be made. */
static inline bool fz_futex2_is_plain(unsigned flags)
{
	return (flags & ~(unsigned)FZ_UAPI_FUTEX2_PRIVATE) == FZ_UAPI_FUTEX2_SIZE_U32;
}

/* Returns 0 or -errno.  From a fiber, outside the runtime; parks. */
long fz_futex2_wait(struct fz_fiber *self, uint32_t *word, unsigned long expected, unsigned long bits,
		    unsigned flags, const struct __kernel_timespec *when, int clock);

#endif
