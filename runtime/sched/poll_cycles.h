/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_POLL_CYCLES_H
#define FZ_RUNTIME_SCHED_POLL_CYCLES_H

/*
 * runtime/sched/poll_cycles.h - how many cycles of fz_cycles() lie between two looks at the ring of
 * a busy processor: fz_sched.poll_cycles.
 */

#include "runtime/base/time.h"

#define FZ_POLL_PAUSE (200 * FZ_USEC)	/* between two looks at the ring of a busy processor */

/* Before the first switch: find out whether fz_cycles() is cheap. */
void fz_poll_cycles_start(void);

/* Measure it over the calls of some milliseconds, unless it is known.  By the monitor. */
void fz_poll_cycles_measure(fz_nsec now);

/* In the child of a fork. */
void fz_poll_cycles_after_fork(void);

#endif
