/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_POLL_CYCLES_H
#define FZ_RUNTIME_SCHED_POLL_CYCLES_H

/*
 * runtime/sched/poll_cycles.h - how often the ring of a busy processor is looked at, in cycles of
 * fz_cycles() (fz_sched.poll_cycles); and how often the monitor looks at the processors.
 */

#include "runtime/base/time.h"

#define FZ_POLL_PAUSE (200 * FZ_USEC)	/* between two looks at the ring of a busy processor */

/* Before the first switch: find out whether fz_cycles() is cheap. */
void fz_poll_cycles_start(void);

/*
 * By the monitor: measure fz_sched.poll_cycles, unless it is known.  Needs several calls, at least 1 ms apart.
 * If fz_cycles() has not been cheap so far, it first finds out whether it is now; after 100 tries it gives up.
 */
void fz_poll_cycles_measure(fz_nsec now);

/* In the child of a fork. */
void fz_poll_cycles_after_fork(void);

/*
 * How often the monitor looks at the processors.  Every 1 ms if other fibers need a processor that is in use;
 * every 8 ms when nobody has needed one for CALM_TICKS (poll_cycles.c), until a thread makes a fiber runnable;
 * after 4 ms if the last look found no processor in use.  The longer ticks save CPU time: a tick costs about
 * 40 us in a virtual machine, with the switches around it.
 */
enum { FZ_TICK_US = 1000, FZ_TICK_LONG = 8 };	/* FZ_TICK_LONG: in ticks */

extern _Atomic bool fz_tick_is_long FZ_HIDDEN;

/*
 * By the monitor, after a look: returns the number of ticks until the next look.  unused: no processor is in
 * use.  needed: other fibers need a processor that is in use.
 */
uint32_t fz_tick_choose(bool unused, bool needed);

/* The rare part of fz_tick_note_runnable(). */
void fz_tick_shorten(void);

/* A fiber has become runnable.  Any thread. */
static inline void fz_tick_note_runnable(void)
{
	/*
	 * relaxed: if this thread misses a long tick that begins now, the monitor sees the fiber at
	 * the end of that tick.
	 */
	if (FZ_UNLIKELY(atomic_load_explicit(&fz_tick_is_long, memory_order_relaxed)))
		fz_tick_shorten();
}

#endif
