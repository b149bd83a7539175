/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_BIRTH_H
#define FZ_RUNTIME_SCHED_BIRTH_H

/*
 * runtime/sched/birth.h - fibers in their first life.
 *
 * A new fiber may run once its own kernel thread has ended (fz_adopt_is_over()).  The kernel may
 * run other threads first, so only a carrier that has nothing else to do waits for that.  Until
 * then new fibers are in a queue of their own, fz_sched.births.
 */

#include "runtime/fiber/fiber.h"

/* fz_sched_ready() for a fiber that begins a life, its first or another.  In the runtime. */
void fz_birth_begin(struct fz_fiber *fiber);

/* Take one of the first new fibers that may run, or NULL.  In the runtime. */
struct fz_fiber *fz_birth_pop(void);

/*
 * If the first new fiber may not run yet, wait for that, for at most 1 ms; blocks the calling kernel
 * thread.  In the runtime.  Returns false if there is no new fiber.
 */
bool fz_birth_await(void);

/*
 * Wait until all births are over and their kernel threads are gone: until then the kernel counts
 * them.  Blocks the calling kernel thread.  In the runtime.  Returns false if there were none.
 */
bool fz_birth_await_all(void);

/*
 * Bracket around the wait of a carrier that has nothing else to do.  Only one carrier at a time
 * waits for new fibers: if all did, one new fiber would wake them all.  fz_birth_watch_begin()
 * returns false if there is no new fiber, or if another carrier waits already.
 */
bool fz_birth_watch_begin(void);
void fz_birth_watch_end(void);

/* Are there new fibers that no carrier waits for?  Any thread; a hint. */
bool fz_birth_is_unwatched(void);

#endif
