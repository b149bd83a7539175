/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_WIRE_H
#define FZ_RUNTIME_FIBER_WIRE_H

/*
 * runtime/fiber/wire.h - a fiber and the kernel thread that it stays on, or must leave.
 */

#include "runtime/fiber/fiber.h"

/*
 * Wire the calling fiber: from now on it is a kernel thread like any other.  Needed for state that
 * the kernel keeps for each kernel thread, such as the ownership of robust and priority-inheriting
 * mutexes.  Outside the runtime.  Idempotent; does nothing for other threads, nor in a child process that runs in the fiber's
 * memory, which is a kernel thread itself.  why: to be shown; a constant string.
 */
void fz_fiber_wire_for(struct fz_fiber *self, const char *why);
static inline void fz_fiber_wire(struct fz_fiber *self)
{
	fz_fiber_wire_for(self, "the kernel must know it by its own thread id");
}

/*
 * The calling fiber is wired, is not main, and has ended: undo the wiring.  The fiber is an ordinary one
 * afterwards, without a processor; fz_sched_end() leads to its carrier's own context, in which the kernel
 * thread ends.  In the runtime.
 */
void fz_fiber_unwire(struct fz_fiber *self);

/* fz_fiber_wire_for(), but returns false if no kernel thread can be had; fz_fiber_wire_for() ends the process then. */
bool fz_fiber_try_wire_for(struct fz_fiber *self, const char *why);
/* The same, to a kernel thread whose calls nothing of io_uring's interrupts (fz_carrier_is_undisturbed), if one can be made. */
bool fz_fiber_wire_undisturbed(struct fz_fiber *self, const char *why);
/* By the main thread, before there are other fibers: wire it to the process's first kernel thread. */
void fz_fiber_wire_main(struct fz_fiber *self, const char *why);

/*
 * Move the calling fiber to a kernel thread that is not the process's first.  Its next switch may
 * bring it back there.  Returns false if no kernel thread can be had.  Outside the runtime.
 */
bool fz_fiber_leave_leader(struct fz_fiber *self);

#endif
