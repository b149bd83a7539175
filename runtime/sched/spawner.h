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

#include "runtime/base/base.h"

/* The spawner's loop, on a helper thread of runtime/sched/start.c.  Does not return. */
void fz_spawner_run(void);

/*
 * See that there is an idle carrier.  If there is none, the spawner makes one soon and pokes the
 * monitor.  Any thread.
 */
void fz_spawner_want_spare(void);

void fz_spawner_after_fork(void);

#endif
