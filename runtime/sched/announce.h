/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_ANNOUNCE_H
#define FZ_RUNTIME_SCHED_ANNOUNCE_H

/*
 * runtime/sched/announce.h - real calls that may wait, so that the carrier's processor is not
 * lost to others meanwhile: the rungs "announced" and "brief" of runtime/base/GLOSSARY.md.
 *
 *	fz_announce(self);		The call is about to wait: the processor is handed
 *	ret = the real call		off before the call.
 *
 *	fz_announce_brief(self);	The call usually returns at once, and sometimes waits
 *	ret = the real call		for a disk, a server, or another process.
 *	fz_announce_end(self);
 *
 * fz_announce_brief() costs a few instructions: the carrier notes that it is in a call, and the
 * monitor takes the processor if it finds the carrier in one call at two looks.
 *
 * Call all three from a fiber, outside the runtime; they do nothing for other threads.  Handlers
 * of the program run during the call.  If the call does not return (cancellation, longjmp),
 * nothing has to be undone: the next fz_enter_runtime() finds a processor.
 */

#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

/* Hand the processor off if it has fibers, requests or deadlines that need a carrier. */
void fz_announce(struct fz_fiber *self);

/* relaxed: only this thread and its handlers write the carrier's calls; the monitor samples. */
static inline void fz_announce_brief(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (self->kind != FZ_KIND_FIBER)
		return;
	/* An announced call before this one may have left the carrier without a processor. */
	if (FZ_UNLIKELY(c->block != NULL))
		c->call_owned = atomic_load_explicit(&c->processor->owner, memory_order_relaxed) ==
				((uintptr_t)c | FZ_OWNER_USER);
	atomic_store_explicit(&c->calls,
			      (atomic_load_explicit(&c->calls, memory_order_relaxed) +
			       FZ_CARRIER_CALL) | FZ_CARRIER_IN_CALL,
			      memory_order_relaxed);
}

/* The rare cases of fz_announce_end(). */
bool fz_announce_end_slowly(struct fz_fiber *self);

/*
 * May let other fibers run.  errno stays.  Returns true if the carrier has lost its processor
 * during the call, which was not brief then.
 */
static inline bool fz_announce_end(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	const struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER)
		return false;
	atomic_store_explicit(&c->calls,
			      atomic_load_explicit(&c->calls, memory_order_relaxed) &
				      ~(uint32_t)FZ_CARRIER_IN_CALL,
			      memory_order_relaxed);
	/*
	 * relaxed: this thread wrote USER with its own name; yield_wanted is a hint.  A fiber that
	 * is preempted here goes on on another carrier, and c may be idle, without a processor.
	 */
	p = c->processor;
	if (FZ_UNLIKELY(!p ||
			atomic_load_explicit(&p->owner, memory_order_relaxed) !=
				((uintptr_t)c | FZ_OWNER_USER) ||
			atomic_load_explicit(&p->yield_wanted, memory_order_relaxed)))
		return fz_announce_end_slowly(self);
	return false;
}

#endif
