/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_MONITOR_H
#define FZ_RUNTIME_SCHED_MONITOR_H

/*
 * runtime/sched/monitor.h - the kernel thread that finds CPU-bound fibers, and takes processors back.
 *
 * The monitor looks at each tick (1, 4 or 8 ms: poll_cycles.h) while any processor is in use, and sleeps without a timeout when
 * none is and it has looked at all waits (fz_monitor_check_waits).  It also receives the signals that no other thread can take.  It never waits for a
 * lock of libc's or of the program's allocator (runtime/sched/spawner.h).
 */

#include "runtime/base/base.h"

/* The monitor's loop, on a helper thread of runtime/sched/start.c.  Does not return. */
void fz_monitor_run(void);

/*
 * Both are called by the monitor when it looks at the processors: the time, and how often the runtime
 * has been entered.  Return true to be called again within 100 ms even if all is quiet.  NULL: none.
 */
extern bool (*fz_monitor_check_waits)(fz_nsec now, uint32_t entries, bool in_use) FZ_HIDDEN;
extern bool (*fz_monitor_find_deadlocks)(fz_nsec now, uint32_t entries, bool in_use) FZ_HIDDEN;

/* A processor is in use again.  Any thread; cheap while the monitor is awake. */
void fz_monitor_note_activity(void);

/* Wake the monitor: something wants its attention now.  Any context, signal handlers too. */
void fz_monitor_poke(void);

/* Ask for a carrier for a processor that no carrier runs.  Any thread. */
void fz_monitor_want_carrier(void);

/*
 * Sleeps the monitor, or has a signal woken it that it has not taken yet, because it has not run since?  The caller can take
 * such a signal itself (fz_signal_look).  Any thread.
 */
bool fz_monitor_is_asleep(void);

/*
 * fz_monitor_handle() returns the monitor's pthread_t, for one pthread_cancel, which the monitor
 * survives; call it outside the runtime, it waits as fz_monitor_update_mask() does.  After the
 * pthread_cancel call fz_monitor_set_cancelled(): the monitor then looks whether libc has sent it
 * SIGCANCEL (fz_signal_learn_cancel()).
 */
unsigned long fz_monitor_handle(void);
bool fz_monitor_is_cancelled(void);
void fz_monitor_set_cancelled(void);

void fz_monitor_after_fork(void);

#endif
