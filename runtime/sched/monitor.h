/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_MONITOR_H
#define FZ_RUNTIME_SCHED_MONITOR_H

/*
 * runtime/sched/monitor.h - the kernel thread that finds CPU-bound fibers, and takes processors back.
 *
 * The monitor looks at the processors at each tick (1, 4 or 8 ms: poll_cycles.h) while any processor is in use.
 * When none is in use and it has checked all waits (fz_monitor_check_waits), it sleeps without a timeout.  It
 * also receives the signals that no other thread can take.  It never waits for a lock of libc or of the
 * program's allocator (runtime/sched/spawner.h).
 */

#include "runtime/base/base.h"

/* The monitor's loop, on a helper thread of runtime/sched/start.c.  Does not return. */
void fz_monitor_run(void);

/*
 * Called by the monitor at each look at the processors.  now: the time; entries: how often the runtime has been
 * entered, on all processors; in_use: a processor is in use.  A function that returns true is called again
 * within 100 ms even if no fiber runs.  NULL: none.
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
 * The caller has found no idle carrier for a processor.  If it looks once more after this call, it finds the carrier that has
 * become idle meanwhile, or that carrier finds what is said here (fz_monitor_note_idle_carrier()).  By the monitor.
 */
void fz_monitor_lack_carrier(void);

/* The caller has put a carrier on the idle list: the monitor looks whether one is wanted.  Cheap if not. */
void fz_monitor_note_idle_carrier(void);

/*
 * Does the monitor sleep?  Also true if a signal has woken it but it has not run since: then the caller can
 * still take that signal itself (fz_signal_look).  Any thread.
 */
bool fz_monitor_is_asleep(void);

/*
 * The library has libc cancel the monitor once, which survives that, so that libc installs its
 * handler of SIGCANCEL and shows how it cancels (preload/thread/cancel.c).  fz_monitor_handle()
 * returns the monitor's pthread_t for that; outside the runtime; it waits as
 * fz_monitor_update_mask() does.  After the pthread_cancel call fz_monitor_set_cancelled(): the
 * monitor then looks whether libc has sent it SIGCANCEL (fz_signal_learn_cancel()).
 */
unsigned long fz_monitor_handle(void);
bool fz_monitor_is_cancelled(void);
void fz_monitor_set_cancelled(void);

void fz_monitor_after_fork(void);

#endif
