/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_WIRE_H
#define FZ_RUNTIME_FIBER_WIRE_H

/*
 * runtime/fiber/wire.h - a fiber and the kernel thread that it stays on, or must leave.
 */

#include "runtime/fiber/fiber.h"

/*
 * Wire the calling fiber: from now on it is a kernel thread like any other.  For what the kernel
 * must know by thread, such as the owner of a robust or a priority-inheriting mutex.  Outside the
 * runtime.  Idempotent; does nothing for other threads.  why: to be shown; a constant string.
 */
void fz_fiber_wire_for(struct fz_fiber *self, const char *why);
static inline void fz_fiber_wire(struct fz_fiber *self)
{
	fz_fiber_wire_for(self, "the kernel must know it by its own thread id");
}

/*
 * The calling fiber, wired and not main, has ended: its kernel thread ends from its carrier's own context, and the fiber is
 * one as others, without a processor, which goes to that context by fz_sched_end().  In the runtime.
 */
void fz_fiber_unwire(struct fz_fiber *self);

/* Returns false if no kernel thread can be had. */
bool fz_fiber_try_wire_for(struct fz_fiber *self, const char *why);
/* Main, before there are other fibers: to the process's first kernel thread. */
void fz_fiber_wire_main(struct fz_fiber *self, const char *why);

/*
 * Have the calling fiber go on on a kernel thread that is not the process's first.  It may come
 * back there at the next switch.  Returns false if no kernel thread can be had.  Outside the
 * runtime.
 */
bool fz_fiber_leave_leader(struct fz_fiber *self);

#endif
