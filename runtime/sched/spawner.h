/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SPAWNER_H
#define FZ_RUNTIME_SCHED_SPAWNER_H

/*
 * runtime/sched/spawner.h - the carrier spawner: the kernel thread that makes carriers.
 *
 * Making a carrier takes locks of libc and of the program's allocator.  A fiber may hold one
 * while it has no processor: a signal handler interrupted it in malloc, and then waited.  If a
 * thread with a processor waited for that lock, that fiber might never get a processor.  The
 * monitor must not wait for such a lock either, because it has to preempt CPU-bound fibers.
 */

#include "runtime/fiber/fiber.h"

/* The spawner's loop, on a helper thread of runtime/sched/start.c.  Does not return. */
void fz_spawner_run(void);

/*
 * See that there is an idle carrier.  If there is none, the spawner makes one soon and pokes the
 * monitor.  Any thread.
 */
void fz_spawner_want_spare(void);

/* See that there is an idle carrier that may end (fz_carrier_may_end): the spawner makes one soon.  In the runtime. */
void fz_spawner_want_mortal(void);

/*
 * Bracket around work that takes a carrier away from the other fibers and cannot be interrupted: a fiber is
 * wired, or blocks its kernel thread for locks of libc whose holders may need a carrier.  One fiber at a time
 * has the turn, and it begins only when an idle carrier exists besides its own.  So at least one carrier always
 * runs fibers, unless the spawner failed to make one.
 *
 * These callers take no turn, and both calls do nothing for them: threads that are no fibers; a thread that
 * holds a lock for which the spawner may have to wait (fz_host.needs_no_turn); and all threads if the program
 * has an allocator of its own, because making a thread then runs the allocator's code, which may wait for a
 * thread that waits for the turn.
 *
 * fz_spawner_turn_begin(): outside the runtime; may park.  Turns of one thread nest.  No handler of the program
 * runs during a turn (fz_signal_bar).
 */
void fz_spawner_turn_begin(struct fz_fiber *self);
void fz_spawner_turn_end(struct fz_fiber *self);

void fz_spawner_after_fork(void);

#endif
