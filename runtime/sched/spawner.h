/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SPAWNER_H
#define FZ_RUNTIME_SCHED_SPAWNER_H

/*
 * runtime/sched/spawner.h - the carrier spawner: the kernel thread that makes carriers.
 *
 * Making a carrier takes locks of libc and of the program's allocator.  A fiber may hold one
 * while it has no processor: a signal handler interrupted it in malloc, and then waited.  If a
 * thread with a processor waited for that lock, that fiber might never get a processor.  The
 * monitor must not wait for the lock either: it makes busy fibers let others run.
 */

#include "runtime/fiber/fiber.h"

/* The spawner's loop, on a helper thread of runtime/sched/start.c.  Does not return. */
void fz_spawner_run(void);

/*
 * See that there is an idle carrier.  If there is none, the spawner makes one soon and pokes the
 * monitor.  Any thread.
 */
void fz_spawner_want_spare(void);

/*
 * A fiber is about to block its kernel thread for locks of libc's, with no way to interrupt it:
 * wait until there is an idle carrier, which will run their holders.  Returns at once for other
 * threads, and when the spawner has failed to make one.  Outside the runtime; may park.
 */
void fz_spawner_await_spare(struct fz_fiber *self);

void fz_spawner_after_fork(void);

#endif
