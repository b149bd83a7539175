/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_ANNOUNCE_H
#define FZ_RUNTIME_SCHED_ANNOUNCE_H

/*
 * runtime/sched/announce.h - real calls that may wait, so that the carrier's processor is not
 * lost to others meanwhile (design.md, rung 4).
 *
 *	fz_announce(self);		it is about to wait: hands the processor
 *	ret = the real call		off before it
 *
 *	fz_announce_brief(self);	it usually returns at once, and sometimes waits
 *	ret = the real call		for a disk, a server, or another process
 *	fz_announce_end(self);
 *
 * The second costs a few instructions: the carrier notes that it is in a call, and the monitor
 * takes the processor if it finds it in the same one at two looks.
 *
 * All: from a fiber, outside the runtime; nothing for other threads.  Handlers of
 * the program run during the call.  If the call does not return (cancellation,
 * longjmp), there is nothing to undo: the next fz_enter_runtime finds a processor.
 */

#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

/* Hands the processor to another carrier if anything could need it. */
void fz_announce(struct fz_fiber *self);

/* relaxed throughout: only this thread and its handlers write it, the monitor samples. */
static inline void fz_announce_brief(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (self->kind == FZ_KIND_FIBER)
		atomic_store_explicit(&c->calls,
				      (atomic_load_explicit(&c->calls, memory_order_relaxed) +
				       FZ_CARRIER_CALL) | FZ_CARRIER_IN_CALL,
				      memory_order_relaxed);
}

/* The rare cases of fz_announce_end(). */
bool fz_announce_end_slowly(struct fz_fiber *self);

/*
 * May let others run.  errno stays.  Returns true if the call was not brief at all:
 * the processor went.
 */
static inline bool fz_announce_end(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (self->kind != FZ_KIND_FIBER)
		return false;
	atomic_store_explicit(&c->calls,
			      atomic_load_explicit(&c->calls, memory_order_relaxed) &
				      ~(uint32_t)FZ_CARRIER_IN_CALL,
			      memory_order_relaxed);
	/* relaxed: USER in our name is ours to see; the other is a hint. */
	if (FZ_UNLIKELY(atomic_load_explicit(&c->processor->owner, memory_order_relaxed) !=
				((uintptr_t)c | FZ_OWNER_USER) ||
			atomic_load_explicit(&c->processor->yield_wanted,
					     memory_order_relaxed)))
		return fz_announce_end_slowly(self);
	return false;
}

#endif
