/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_HINTS_H
#define FZ_RUNTIME_IO_HINTS_H

/*
 * runtime/io/hints.h - ends waits that rest on a stale hint.
 *
 * Another process, or a system call that the library does not see, may have set O_NONBLOCK or a
 * timeout on a descriptor whose hints (runtime/io/fdtab.h) say that calls wait for ever.  To ask
 * the kernel before each wait would cost too much; a call that need not wait gives the right
 * answer in any case.  So the monitor asks the kernel once for each wait that it meets at two looks.
 * It looks every 100 ms, each time at the next 1,024 threads.  If the descriptor has been closed
 * meanwhile, the wait goes on: the kernel's answer may be about another open file.  If the program has taken the
 * hint back meanwhile, the kernel was asked then (hints.c).
 *
 * Natively a call looks at O_NONBLOCK and at its timeout when it begins, and not again.  So what it rests on is noted
 * then, once for all its waits:
 *
 *	hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info));
 *	fz_hints_begin(self, hinted);	in the runtime, before the wait is armed
 *	fz_park(self, deadline);
 *		if it ends by FZ_WHY_SIGNAL, and no handler has run, fz_fdtab_found_wrong(hinted) tells which hint was
 *		stale: ask the kernel again
 *	fz_hints_end(self);		in the runtime
 */

#include "runtime/fiber/fiber.h"
#include "runtime/io/fdtab.h"

/* hinted: fz_fdtab_wait().  relaxed: the monitor compares the number of the wait (collect() in hints.c). */
static inline void fz_hints_begin(struct fz_fiber *self, uint32_t hinted)
{
	atomic_store_explicit(&self->timer.hinted, hinted, memory_order_relaxed);
}

static inline void fz_hints_end(struct fz_fiber *self)
{
	atomic_store_explicit(&self->timer.hinted, 0, memory_order_relaxed);
}

/* Let the monitor look from now on. */
void fz_hints_init(void);

#endif
