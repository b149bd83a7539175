/* SPDX-License-Identifier: MIT */
#include "runtime/io/hints.h"

#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"

enum {
	BATCH = 256,		/* fibers looked at with the registry locked */
	LOOK_MOST = 4,		/* batches in one look; a look at 10,000 fibers would take 2 ms */
	PERIOD_MS = 100,	/* between looks */
	/* After these, each wait has been met at two looks; in the first round, one may be about to begin. */
	ROUNDS = 3,
};

/* Used by the monitor alone. */
static struct {
	struct {
		struct fz_ticket ticket;
		uint32_t name;	/* of its open file, fz_fdtab_name() */
	} waits[BATCH];
	unsigned count;
	uint32_t entries;	/* how often the runtime had been entered, at the last call of check() */
	unsigned due;		/* rounds to come */
	bool amid;		/* the last look ended in the middle of a round */
	fz_nsec last;
	bool all;		/* this look is at all waits */
	/*
	 * After a stale hint was found and corrected: how many of the next looks end all waits for
	 * descriptors with O_NONBLOCK or a timeout.  Calls that read the hint before it was corrected wait
	 * already, or are about to.
	 */
	unsigned endings;
} hints;

/*
 * Collect the fiber's wait if it rests on a hint, was there at the last look, and has not been
 * collected yet; with hints.all, any wait that rests on a hint.  To ask the kernel about a wait costs a
 * system call, and few waits of a server last until the second look.
 */
static void collect(struct fz_fiber *f)
{
	/* acquire: pairs with fz_wait_arm(), before which the fiber stored `hinted`. */
	const uint64_t word = atomic_load_explicit(&f->wait, memory_order_acquire);
	const uint64_t state = word & FZ_WAIT_STATE_MASK, number = word >> FZ_WAIT_NUMBER_SHIFT;
	/* relaxed: the fence and the second load of `wait` show to which wait `hinted` belongs. */
	const uint32_t hinted = atomic_load_explicit(&f->timer.hinted, memory_order_relaxed);

	if (!hinted || (state != FZ_WAIT_ARMED && state != FZ_WAIT_PARKED) ||
	    (f->all.wait_checked == number && !hints.all))
		return;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&f->wait, memory_order_relaxed) >> FZ_WAIT_NUMBER_SHIFT != number)
		return;
	if (f->all.wait_seen != number && !hints.all) {
		f->all.wait_seen = number;
		return;
	}
	f->all.wait_checked = number;
	hints.waits[hints.count].ticket = (struct fz_ticket){ f, number };
	hints.waits[hints.count].name = hinted;
	hints.count++;
}

/* Look at the next waits, or at all.  Returns true if a hint was stale. */
static bool look(bool all)
{
	bool found = false;

	hints.all = all;
	if (all)
		hints.amid = false;
	for (unsigned batches = 0; batches < LOOK_MOST || all; batches++) {
		hints.count = 0;
		hints.amid = fz_fiber_each_of(collect, BATCH, !hints.amid);
		for (unsigned i = 0; i < hints.count; i++) {
			const int fd = (int)(hints.waits[i].name & ~FZ_FD_CHANGES) - 1;
			const bool stale = fz_fdtab_is_stale(fd);

			found |= stale;
			if ((stale || (all && fz_fdtab_limits(fd))) &&
			    fz_fdtab_name(fd) == hints.waits[i].name)
				fz_wake(hints.waits[i].ticket, FZ_WHY_SIGNAL);
		}
		if (!hints.amid)
			break;
	}
	return found;
}

static bool check(fz_nsec now, uint32_t entries, bool in_use)
{
	bool all;

	/* A fiber on a processor that is in use may be about to wait. */
	if (entries != hints.entries || in_use)
		hints.due = ROUNDS;
	hints.entries = entries;
	if (hints.due && now >= hints.last + PERIOD_MS * FZ_MSEC) {
		hints.last = now;
		all = hints.endings != 0;
		hints.endings -= all;
		if (look(all)) {
			hints.due = ROUNDS;
			hints.endings = 2;
		} else if (!hints.amid) {
			hints.due--;
		}
	}
	return hints.due;
}

void fz_hints_init(void)
{
	fz_monitor_check_waits = check;
}
