/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_TICK_H
#define FZ_RUNTIME_SCHED_TICK_H

/*
 * runtime/sched/tick.h - how often the monitor looks at the processors: each millisecond, or, while
 * those that are in use are needed by nobody else, each 8.  Whoever makes a fiber runnable ends
 * that.
 */

#include "runtime/base/base.h"

enum { FZ_TICK_US = 1000, FZ_TICK_LONG = 8 };	/* FZ_TICK_LONG: in ticks */

extern _Atomic bool fz_tick_is_long FZ_HIDDEN;

/* By the monitor, after a look: returns how many ticks there are to the next one. */
uint32_t fz_tick_choose(bool needed);

/* The rare part of fz_tick_note_runnable(). */
void fz_tick_shorten(void);

/* A fiber has become runnable.  Any thread. */
static inline void fz_tick_note_runnable(void)
{
	/* relaxed: one that is missed is seen after a long tick. */
	if (FZ_UNLIKELY(atomic_load_explicit(&fz_tick_is_long, memory_order_relaxed)))
		fz_tick_shorten();
}

void fz_tick_after_fork(void);

#endif
