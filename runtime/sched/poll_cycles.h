/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_POLL_CYCLES_H
#define FZ_RUNTIME_SCHED_POLL_CYCLES_H

/*
 * runtime/sched/poll_cycles.h - how many cycles of fz_cycles() lie between two looks at the ring of
 * a busy processor, fz_sched.poll_cycles; and how often the monitor looks.
 */

#include "runtime/base/time.h"

#define FZ_POLL_PAUSE (200 * FZ_USEC)	/* between two looks at the ring of a busy processor */

/* Before the first switch: find out whether fz_cycles() is cheap. */
void fz_poll_cycles_start(void);

/* Measure it over the calls of some milliseconds, unless it is known.  By the monitor. */
void fz_poll_cycles_measure(fz_nsec now);

/* In the child of a fork. */
void fz_poll_cycles_after_fork(void);

/*
 * How often the monitor looks at the processors: each millisecond, or, while those that are in use
 * are needed by nobody else, each 8.  Whoever makes a fiber runnable ends that.  After a look that has found none in
 * use it waits for 4: a tick costs some 40 us in a guest, with the switches around it.
 */
enum { FZ_TICK_US = 1000, FZ_TICK_LONG = 8 };	/* FZ_TICK_LONG: in ticks */

extern _Atomic bool fz_tick_is_long FZ_HIDDEN;

/*
 * By the monitor, after a look: returns how many ticks there are to the next one.  unused: no processor is in use;
 * needed: one that is in use is needed by others.
 */
uint32_t fz_tick_choose(bool unused, bool needed);

/* The rare part of fz_tick_note_runnable(). */
void fz_tick_shorten(void);

/* A fiber has become runnable.  Any thread. */
static inline void fz_tick_note_runnable(void)
{
	/* relaxed: one that is missed is seen after a long tick. */
	if (FZ_UNLIKELY(atomic_load_explicit(&fz_tick_is_long, memory_order_relaxed)))
		fz_tick_shorten();
}

#endif
