/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_MONITOR_H
#define FZ_RUNTIME_SCHED_MONITOR_H

/*
 * runtime/sched/monitor.h - the kernel thread that takes processors back.
 *
 * Looks every millisecond while any processor is in use, sleeps without a
 * timeout when none is.  Also receives signals that nobody else is there to receive.
 * It never waits for a lock of libc's, or of the program's allocator (runtime/sched/spawner.h).
 */

#include "runtime/base/base.h"

/* What it runs, on a helper of runtime/sched/start.c.  Does not return. */
void fz_monitor_run(void);

/* A processor is in use again.  Any thread; cheap while the monitor is awake. */
void fz_monitor_note_activity(void);

/* Something wants attention now.  Any thread, signal handlers too. */
void fz_monitor_poke(void);

/* A carrier is wanted for a processor that nobody runs.  Any thread. */
void fz_monitor_want_carrier(void);

/*
 * fz_signal_left_to_kernel() has changed: returns when its signal mask is that, and the
 * signals that the kernel had for the monitor before the call are given out.
 * Outside the runtime, or, without waiting, by a poke.
 */
void fz_monitor_update_mask(void);

/*
 * Its pthread_t, for one pthread_cancel, which it survives.  Whether libc has sent
 * SIGCANCEL to do that it looks when told that it is done (fz_signal_learn_cancel()).
 * The first as fz_monitor_update_mask().
 */
unsigned long fz_monitor_handle(void);
bool fz_monitor_is_cancelled(void);
void fz_monitor_set_cancelled(void);

void fz_monitor_after_fork(void);

#endif
