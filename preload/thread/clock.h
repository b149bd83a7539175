/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_CLOCK_H
#define FZ_PRELOAD_THREAD_CLOCK_H

/*
 * preload/thread/clock.h - clocks that count the CPU time of a fiber.
 */

#include "preload/libc_proto.h"
#include "runtime/fiber/fiber.h"

/* The fiber whose CPU time the clock counts, or NULL.  Any thread. */
struct fz_fiber *fz_clock_fiber(clockid_t clock);

/*
 * The clock to pass to the kernel for a timer. If it is the calling fiber's clock, the fiber is
 * wired, since the kernel must know its thread. The kernel refuses the clock of another fiber.
 */
clockid_t fz_clock_of_kernel(clockid_t clock);

/*
 * clock_nanosleep() on a clock of fz_clock_fiber(); self is the calling fiber or NULL. Returns 0
 * or -errno.
 */
int fz_clock_sleep(struct fz_fiber *self, clockid_t clock, int flags,
		   const struct timespec *time, struct timespec *rem);

#endif
