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
 * All deadlines are of CLOCK_MONOTONIC.  Where the program waits until a time of CLOCK_REALTIME, fz_clock_until()
 * keeps the deadline in the fiber, too: a timer whose deadline is still that one belongs to such a wait.  When the
 * monitor sees that CLOCK_REALTIME has gained on CLOCK_MONOTONIC, it moves those timers forward.  Where the clock
 * was set back, nothing is done: the wait ends too early, and its caller, who looks at the clock then, waits again.
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

/* Does any of the deadlines belong to a wait until a time of CLOCK_REALTIME?  Any thread. */
bool fz_timers_has_realtime(struct fz_timers *t);

/* CLOCK_REALTIME was set forward by gained ns: move the deadlines of such waits.  Any thread. */
void fz_timers_advance(struct fz_timers *t, fz_nsec gained);

static inline fz_nsec fz_timers_earliest(const struct fz_timers *t)
{
	/* relaxed: the owner wrote it, or the reader only samples. */
	return atomic_load_explicit(&t->earliest, memory_order_relaxed);
}

/* The first wait until a time of CLOCK_REALTIME begins.  Any thread. */
void fz_clock_begin(void);

extern _Atomic bool fz_clock_is_used FZ_HIDDEN;

/* Returns deadline, that of a wait of self until a time of CLOCK_REALTIME, which begins next. */
static inline fz_nsec fz_clock_until(struct fz_fiber *self, fz_nsec deadline)
{
	self->by_realtime = deadline;
	/* relaxed: a thread that misses it begins once more. */
	if (FZ_UNLIKELY(!atomic_load_explicit(&fz_clock_is_used, memory_order_relaxed)))
		fz_clock_begin();
	return deadline;
}

/*
 * FUTEX_WAIT of a kernel thread for at most `left` ns of CLOCK_REALTIME: less if that is set forward.  Returns 0 or
 * -errno.
 */
long fz_clock_wait(const void *word, uint32_t expected, fz_nsec left);

/* By the monitor, at each look. */
void fz_clock_look(void);

/* By the monitor: does any fiber wait until a time of CLOCK_REALTIME? */
bool fz_clock_is_awaited(void);

/* For fz_clock_look(), with how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, ns. */
void fz_clock_look_at(int64_t ahead);

#endif
