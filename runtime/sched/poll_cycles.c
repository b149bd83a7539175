/* SPDX-License-Identifier: MIT */
#include "runtime/sched/poll_cycles.h"

#include "runtime/base/time.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"

static struct {
	fz_nsec measured_at;		/* when fz_cycles() returned first_cycles */
	uint64_t first_cycles;
	uint32_t measurings;		/* calls of fz_poll_cycles_measure() that measured */
} last;

/* Some hypervisors emulate the cycle counter, which makes fz_cycles() slow. */
void fz_poll_cycles_start(void)
{
	enum { TRIES = 3, READS = 16, MOST = 100 };

	/* Several tries: a cheap counter seems expensive if the kernel interrupts the loop. */
	for (int i = 0; i < TRIES && !fz_sched.cycles_are_cheap; i++) {
		fz_nsec begin = fz_now();

		for (int k = 0; k < READS; k++)
			(void)fz_cycles();
		fz_sched.cycles_are_cheap = fz_now() - begin < READS * MOST;
	}
}

void fz_poll_cycles_measure(fz_nsec now)
{
	enum { TRIES = 100 };
	uint64_t cycles;
	fz_nsec span;

	/* relaxed: see poll_is_due(). */
	if (FZ_LIKELY(atomic_load_explicit(&fz_sched.poll_cycles, memory_order_relaxed)) ||
	    last.measurings >= TRIES || now < last.measured_at + FZ_MSEC)
		return;
	last.measurings++;
	if (!fz_sched.cycles_are_cheap)
		return;
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
