/* SPDX-License-Identifier: MIT */
#include "runtime/sched/poll_cycles.h"

#include "runtime/base/time.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"

static struct {
	fz_nsec measured_at;		/* when fz_cycles() returned first_cycles */
	uint64_t first_cycles;
	fz_nsec tried_at;
	uint32_t tries;			/* how often fz_poll_cycles_measure() has tried, at tried_at for the last time */
} last;

/* Some hypervisors emulate the cycle counter, which makes fz_cycles() slow; others do for some 0.1 s at a time. */
static bool is_cheap(void)
{
	enum { TRIES = 3, READS = 16, MOST = 100 };

	/* Several tries: a cheap counter seems expensive if the kernel interrupts the loop. */
	for (int i = 0; i < TRIES; i++) {
		fz_nsec begin = fz_now();

		for (int k = 0; k < READS; k++)
			(void)fz_cycles();
		if (fz_now() - begin < READS * MOST)
			return true;
	}
	return false;
}

void fz_poll_cycles_start(void)
{
	/* relaxed: who reads the old value does without the counter. */
	atomic_store_explicit(&fz_sched.cycles_are_cheap, is_cheap(), memory_order_relaxed);
}

void fz_poll_cycles_measure(fz_nsec now)
{
	enum { TRIES = 100 };
	uint64_t cycles;
	fz_nsec span;

	/*
	 * relaxed: see poll_is_due().  Each pause is 1 ms longer than the one before, so that the tries outlast a
	 * time of slow reads.
	 */
	if (FZ_LIKELY(atomic_load_explicit(&fz_sched.poll_cycles, memory_order_relaxed)) ||
	    last.tries >= TRIES || now < last.tried_at + last.tries * FZ_MSEC)
		return;
	last.tries++;
	last.tried_at = now;
	/* relaxed: as in fz_poll_cycles_start(). */
	if (!atomic_load_explicit(&fz_sched.cycles_are_cheap, memory_order_relaxed)) {
		if (!is_cheap())
			return;
		atomic_store_explicit(&fz_sched.cycles_are_cheap, true, memory_order_relaxed);
	}
	now = fz_now();
	cycles = fz_cycles();
	/* The kernel has run something else in between: measure again at the next look. */
	if (fz_now() - now > 10 * FZ_USEC)
		return;
	span = now - last.measured_at;
	if (last.measured_at && span < 1000 * FZ_MSEC)
		atomic_store_explicit(&fz_sched.poll_cycles,
				      (cycles - last.first_cycles) * FZ_POLL_PAUSE / span,
				      memory_order_relaxed);
	last.measured_at = now;
	last.first_cycles = cycles;
}

void fz_poll_cycles_after_fork(void)
{
	__builtin_memset(&last, 0, sizeof(last));
	fz_tick_choose(false, true);
}

enum { CALM_TICKS = 20 };	/* consecutive ticks without need, before long ticks begin */

_Atomic bool fz_tick_is_long;

static uint32_t calm;		/* consecutive ticks without need; used by the monitor alone */

uint32_t fz_tick_choose(bool unused, bool needed)
{
	const uint32_t idle_ticks = 4;

	calm = unused || needed ? 0 : calm + (calm < CALM_TICKS);
	/* relaxed: as in fz_tick_note_runnable(). */
	atomic_store_explicit(&fz_tick_is_long, calm == CALM_TICKS, memory_order_relaxed);
	return unused ? idle_ticks : calm == CALM_TICKS ? FZ_TICK_LONG : 1;
}

void fz_tick_shorten(void)
{
	/* relaxed: one thread is enough to poke; the futex of the poke orders. */
	if (atomic_exchange_explicit(&fz_tick_is_long, false, memory_order_relaxed))
		fz_monitor_poke();
}
