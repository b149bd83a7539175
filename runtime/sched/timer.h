/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_TIMER_H
#define FZ_RUNTIME_SCHED_TIMER_H

/*
 * runtime/sched/timer.h - deadlines of parked fibers: a binary heap per processor.
 *
 * A fiber has at most one deadline, the one of its current wait, and is its own
 * heap entry.  A timer expires by fz_wake(..., FZ_WHY_TIMEOUT).  Insertion and
 * removal are logarithmic and take the heap's lock, because a fiber that was
 * stolen removes itself from the heap of its former processor.
 */

#include "runtime/base/lock.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"

struct fz_timers {
	struct fz_lock lock;
	struct fz_fiber **heap;		/* 1-based; grows by mmap */
	uint32_t used, capacity;
	_Atomic fz_nsec earliest;	/* FZ_FOREVER if empty; any thread reads */
};

void fz_timers_init(struct fz_timers *t);

/* Returns false if there is no memory; then fz_park() watches the clock itself. */
bool fz_timer_add(struct fz_processor *p, struct fz_fiber *f, fz_nsec deadline,
		  uint64_t number);

/* Idempotent.  The fiber must be the caller. */
void fz_timer_remove(struct fz_fiber *f);

/* Wake all fibers whose deadline has passed.  In the runtime.  Returns how many. */
uint32_t fz_timers_expire(struct fz_timers *t, fz_nsec now);

static inline fz_nsec fz_timers_earliest(const struct fz_timers *t)
{
	/* relaxed: the owner wrote it, or the reader only samples. */
	return atomic_load_explicit(&t->earliest, memory_order_relaxed);
}

#endif
