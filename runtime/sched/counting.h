/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_COUNTING_H
#define FZ_RUNTIME_SCHED_COUNTING_H

/*
 * runtime/sched/counting.h - with FIBERIZE_STATS: what becomes of calls, and how long fibers wait.
 *
 * fz_carrier.call is the row of the running fiber's last call.  The call's first outcome is counted
 * in that row; then fz_carrier.call becomes 0, a row that nobody reads.  A switch to another fiber
 * sets it to 0, too, so a fiber that comes back into its call counts nothing more.
 */

#include "runtime/base/count.h"
#include "runtime/sched/carrier.h"

/* The running fiber has made a call.  By the carrier, outside the runtime. */
static inline void fz_counting_call(struct fz_carrier *c, uint16_t row)
{
	fz_count_in(c->block, &c->block->calls[row].by_fibers);
	c->call = row;
}

/* By the carrier. */
static inline void fz_counting_outcome(struct fz_carrier *c, enum fz_outcome outcome)
{
	if (FZ_LIKELY(!c->block))
		return;
	fz_count_in(c->block, &c->block->calls[c->call].outcome[outcome]);
	c->call = 0;
}

/* Count how long the fiber, which was woken at a known time, has waited until it runs now. */
void fz_counting_runs(struct fz_carrier *c, struct fz_fiber *fiber);

/* The carrier leaves the context `from` for `to`. */
static inline void fz_counting_switch(struct fz_carrier *c, const struct fz_fiber *from,
				      struct fz_fiber *to, enum fz_left how)
{
	if (how == FZ_LEFT_PARKED) {
		fz_counting_outcome(c, FZ_OUTCOME_PARKED);
		fz_count_in(c->block, &c->block->waits[from->call.waits_for]);
	}
	c->call = 0;
	if (FZ_UNLIKELY(to->waits.since & FZ_SINCE_SAMPLED))
		fz_counting_runs(c, to);
}

/* The wake-up of this fiber is a sample: note its time, and count how long the fiber slept. */
void fz_counting_sample(struct fz_carrier *c, struct fz_fiber *fiber);

/*
 * The caller, self, wakes a fiber.  The fiber's context is saved, and the caller alone may run or
 * queue it.
 */
static inline void fz_counting_wakes(const struct fz_fiber *self, struct fz_fiber *fiber)
{
	struct fz_carrier *c = self->carrier;

	if (self->kind != FZ_KIND_FIBER && self->kind != FZ_KIND_CARRIER)
		return;
	if (FZ_LIKELY(c->until_sample))
		c->until_sample--;
	else
		fz_counting_sample(c, fiber);
}

#endif
