/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SPAWNER_H
#define FZ_RUNTIME_SCHED_SPAWNER_H

/*
 * runtime/sched/spawner.h - the carrier spawner: the kernel thread that makes carriers.
 *
 * Making a carrier takes locks of libc and of the program's allocator.  The holder of such a
 * lock may be a fiber that waits for a processor, after a signal handler on top of malloc.  So
 * no thread that has a processor may wait for these locks; nor may the monitor, which makes busy
 * fibers let others run.
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
