/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_CPUTIME_H
#define FZ_RUNTIME_FIBER_CPUTIME_H

/*
 * runtime/fiber/cputime.h - the CPU time of a fiber, which the kernel does not know.
 *
 *	until somebody asks	the monitor, at each of its ticks, gives what a carrier
 *				has used to the fiber that runs on it: good to a few
 *				milliseconds, and free
 *	from then on		exact: the carrier's clock is read at each switch, which
 *				costs a system call, 0.2 us or less
 *	wired			the kernel's, plus what it had before
 *
 * Never goes backwards.
 */

#include "runtime/fiber/fiber.h"

extern _Atomic bool fz_cputime_exact FZ_HIDDEN;

/* CPU time that a kernel thread has used, ns; 0 if that cannot be told.  tid 0: the caller. */
uint64_t fz_cputime_of_tid(int tid);

/*
 * What the fiber has used, from now on exact.  Outside the runtime; any thread; the
 * record's next life, if there is one, begins at 0.
 */
uint64_t fz_cputime_of(struct fz_fiber *fiber);

/* By the scheduler, if fz_cputime_exact, when c leaves the context `from`. */
void fz_cputime_switch(struct fz_carrier *c, struct fz_fiber *from);

/* The caller becomes a fiber (the main thread), or stops being one (wired). */
void fz_cputime_adopt(struct fz_fiber *self);
void fz_cputime_wire(struct fz_fiber *self);

/* By the monitor, at a tick: c has a processor. */
void fz_cputime_sample(struct fz_carrier *c);

void fz_cputime_after_fork(void);

#endif
