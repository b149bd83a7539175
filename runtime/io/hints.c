/* SPDX-License-Identifier: MIT */
#include "runtime/io/hints.h"

#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"

enum { BATCH = 256, PERIOD_MS = 100 };

/* Used by the monitor alone. */
static struct {
	struct {
		struct fz_ticket ticket;
		int fd;
	} waits[BATCH];
	unsigned count;
	uint32_t entries;	/* into the runtime, at the last look */
	unsigned due;		/* looks to come: a wait may just be about to begin at the first */
	fz_nsec last;
	bool all;		/* this look ends all waits */
} hints;

static _Atomic bool end_all;

/* Collect the fiber's wait if it is new and due to a hint. */
static bool collect(struct fz_fiber *f, void *arg)
{
	/* acquire: pairs with fz_wait_arm(), before which the fiber stored `hinted`. */
	const uint64_t word = atomic_load_explicit(&f->wait, memory_order_acquire);
	const uint64_t state = word & FZ_WAIT_STATE_MASK, number = word >> FZ_WAIT_NUMBER_SHIFT;
	/* relaxed: the fence and the second look at the word show whose wait it is. */
	const int hinted = atomic_load_explicit(&f->timer.hinted, memory_order_relaxed);

	(void)arg;
	if (!hinted || (state != FZ_WAIT_ARMED && state != FZ_WAIT_PARKED) ||
	    (f->all.wait_checked == number && !hints.all))
		return false;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&f->wait, memory_order_relaxed) >> FZ_WAIT_NUMBER_SHIFT != number)
		return false;
	f->all.wait_checked = number;
	hints.waits[hints.count].ticket = (struct fz_ticket){ f, number };
	hints.waits[hints.count].fd = hinted - 1;
	return ++hints.count == BATCH;
}

static void check_all(void)
{
	do {
		hints.count = 0;
		fz_fiber_each(collect, NULL);
		for (unsigned i = 0; i < hints.count; i++)
			if (hints.all || fz_fdtab_is_stale(hints.waits[i].fd))
				fz_wake(hints.waits[i].ticket, FZ_WHY_SIGNAL);
	} while (hints.count == BATCH);
}

static bool check(fz_nsec now, uint32_t entries)
{
	if (entries != hints.entries)
		hints.due = 2;
	hints.entries = entries;
	/* acquire: pairs with fz_hints_end_all(). */
	hints.all = atomic_exchange_explicit(&end_all, false, memory_order_acquire);
	if (hints.all)
		check_all();
	hints.all = false;
	if (hints.due && now >= hints.last + PERIOD_MS * FZ_MSEC) {
		hints.last = now;
		hints.due--;
		check_all();
	}
	return hints.due;
}

void fz_hints_end_all(void)
{
	/* release: the monitor's look, and the calls that it wakes, find the new backend. */
	atomic_store_explicit(&end_all, true, memory_order_release);
	fz_monitor_poke();
}

void fz_hints_init(void)
{
	fz_monitor_check_waits = check;
}
