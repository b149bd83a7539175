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
 *
 * All deadlines are of CLOCK_MONOTONIC.  Where the program waits until a time of CLOCK_REALTIME, fz_clock_until() gives the
 * deadline that comes of that time, and notes both.  A timer with this deadline belongs to such a wait: when the monitor sees
 * that CLOCK_REALTIME was set, the timer gets the deadline that comes of the time now.  A wait that ends too early is no
 * fault: its caller looks at the clock, and waits again.
 */

#include "runtime/base/lock.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"

struct fz_timers {
	struct fz_lock lock;
	struct fz_fiber **heap;		/* 1-based; grows by mmap */
	uint32_t used, capacity;
	_Atomic uint32_t realtime;	/* how many belong to waits until a time of CLOCK_REALTIME; any thread reads */
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

/* CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by so many ns now: set the deadlines of waits for it.  By the monitor. */
void fz_timers_set_clock(struct fz_timers *t, int64_t ahead);

static inline fz_nsec fz_timers_earliest(const struct fz_timers *t)
{
	/* relaxed: the owner wrote it, or the reader only samples. */
	return atomic_load_explicit(&t->earliest, memory_order_relaxed);
}

/* Has any wait until a time of CLOCK_REALTIME begun? */
extern _Atomic bool fz_clock_is_used FZ_HIDDEN;

/*
 * By how many ns CLOCK_REALTIME was ahead of CLOCK_MONOTONIC at the monitor's last look; INT64_MIN before the first,
 * and when a thread has seen since that the clock was set.
 */
extern _Atomic int64_t fz_clock_ahead FZ_HIDDEN;

/* Note what a wait of self, which begins next, is for; `seen` was read before the clock was, from which the deadline came. */
static inline void fz_clock_note(struct fz_fiber *self, fz_nsec at, fz_nsec deadline, int64_t seen)
{
	self->clock = (struct fz_fiber_clock){ at, deadline, seen };
	/* relaxed: the monitor looks again and again. */
	if (FZ_UNLIKELY(!atomic_load_explicit(&fz_clock_is_used, memory_order_relaxed)))
		atomic_store_explicit(&fz_clock_is_used, true, memory_order_relaxed);
}

/* Returns the deadline of a wait of self, which begins next, until the time `at` of CLOCK_REALTIME; 1 if that has passed. */
fz_nsec fz_clock_until(struct fz_fiber *self, fz_nsec at);

/*
 * A wait of self is over by its deadline.  Returns false if it is really over; otherwise it was one for a time of
 * CLOCK_REALTIME, which was set back meanwhile, and *deadline becomes the one with which it must go on.
 */
bool fz_clock_goes_on(struct fz_fiber *self, fz_nsec *deadline);

/* FUTEX_WAIT of a kernel thread until the time `at` of CLOCK_REALTIME.  Returns 0 or -errno. */
long fz_clock_wait(const void *word, uint32_t expected, fz_nsec at);

/* The monitor calls this at each look. */
void fz_clock_look(void);

/* The monitor asks: does any fiber wait until a time of CLOCK_REALTIME? */
bool fz_clock_is_awaited(void);

/* fz_clock_look() calls this: CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by so many ns. */
void fz_clock_look_at(int64_t ahead);

#endif
