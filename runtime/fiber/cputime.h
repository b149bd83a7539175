/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_CPUTIME_H
#define FZ_RUNTIME_FIBER_CPUTIME_H

/*
 * runtime/fiber/cputime.h - the CPU time of a fiber, which the kernel does not know.
 *
 *	until a thread asks	sampled: at each tick the monitor adds what a carrier has
 *	for it			used to the fiber that runs on it, and so does a carrier
 *				that has lost its processor; precise to a few ms, and
 *				free for the fibers
 *	from its next turn on	exact: the carrier's CPU clock is read where the fiber's turn
 *				begins and ends, two system calls of 0.2 us or less
 *	new threads		exact from the first instruction, once the program has asked
 *				for more than a few
 *	wired thread		the kernel's, plus what the fiber had before
 *
 * The CPU time of a fiber never goes backwards.
 */

#include "runtime/fiber/fiber.h"

/* Is the time of any fiber exact? */
extern _Atomic bool fz_cputime_exact FZ_HIDDEN;

/* CPU time that a kernel thread has used, ns; 0 if unknown.  tid 0: the caller. */
uint64_t fz_cputime_of_tid(int tid);

/*
 * CPU time of the fiber, ns.  The first call makes it exact: at once if the fiber is the caller,
 * otherwise from the fiber's next turn on.  Any thread, outside the runtime.  A reused fiber begins
 * at 0.
 */
uint64_t fz_cputime_of(struct fz_fiber *fiber);

/* By the scheduler, if fz_cputime_exact, when c leaves the context `from` for `to`. */
void fz_cputime_switch(struct fz_carrier *c, struct fz_fiber *from, const struct fz_fiber *to);

/* Before the first turn of a life. */
void fz_cputime_begin(struct fz_fiber *fiber);

/* The caller becomes a fiber (the main thread), or stops being one (wired). */
void fz_cputime_adopt(struct fz_fiber *self);
void fz_cputime_wire(struct fz_fiber *self);

/*
 * Take a sample of c.  Called by the monitor at a tick, for a carrier that has a processor; and by
 * a carrier that has lost its processor, before it gets one.
 */
void fz_cputime_sample(struct fz_carrier *c);

void fz_cputime_after_fork(void);

#endif
