/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SPAWNER_H
#define FZ_RUNTIME_SCHED_SPAWNER_H

/*
 * runtime/sched/spawner.h - the kernel thread that makes carriers.
 *
 * Making one takes locks of libc and of the program's allocator.  Whoever holds one may
 * be a fiber that waits for a processor, after a signal handler on top of malloc; so
 * nobody may wait for them who has a processor, nor the monitor, who sees that busy
 * fibers let others run.
 */

#include "runtime/base/base.h"

/* What it runs, on a helper of runtime/sched/start.c.  Does not return. */
void fz_spawner_run(void);

/*
 * See that there is an idle carrier: at once, or soon, of which the monitor is told.
 * Any thread.
 */
void fz_spawner_want_spare(void);

void fz_spawner_after_fork(void);

#endif
