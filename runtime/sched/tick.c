/* SPDX-License-Identifier: MIT */
#include "runtime/sched/tick.h"

#include "runtime/sched/monitor.h"

enum { CALM_TICKS = 20 };	/* one after the other, before a long one */

_Atomic bool fz_tick_is_long;

static uint32_t calm;		/* ticks without need; by the monitor */

uint32_t fz_tick_choose(bool needed)
{
	calm = needed ? 0 : calm + (calm < CALM_TICKS);
	/* relaxed: as in fz_tick_note_runnable(). */
	atomic_store_explicit(&fz_tick_is_long, calm == CALM_TICKS, memory_order_relaxed);
	return calm == CALM_TICKS ? FZ_TICK_LONG : 1;
}

void fz_tick_shorten(void)
{
	/* relaxed: one thread is enough to poke; the futex of the poke orders. */
	if (atomic_exchange_explicit(&fz_tick_is_long, false, memory_order_relaxed))
		fz_monitor_poke();
}

void fz_tick_after_fork(void)
{
	calm = 0;
	atomic_store_explicit(&fz_tick_is_long, false, memory_order_relaxed);
}
