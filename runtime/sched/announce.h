/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_ANNOUNCE_H
#define FZ_RUNTIME_SCHED_ANNOUNCE_H

/*
 * runtime/sched/announce.h - real calls that may wait, so that the carrier's processor is not
 * lost to others meanwhile: the rungs "announced" and "brief" of preload/rungs.def.
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
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* Hand the processor off if it has fibers, requests or deadlines that need a carrier. */
void fz_announce(struct fz_fiber *self);

/*
 * fz_announce(), for a call that has no way to go on after an interruption, by a completion or by the monitor: the fiber
 * becomes a kernel thread.  If none can be had, the call is made all the same.
 */
void fz_announce_undisturbed(struct fz_fiber *self);

/* relaxed: only this thread and its handlers write the carrier's calls; the monitor samples. */
static inline void fz_announce_brief(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	const struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER)
		return;
	/* An announced call before this one may have left the carrier without a processor; see also fz_announce_end(). */
	if (FZ_UNLIKELY(c->block != NULL)) {
		p = c->processor;
		c->call_owned = p && atomic_load_explicit(&p->owner, memory_order_relaxed) ==
					     ((uintptr_t)c | FZ_OWNER_USER);
	}
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
	 * relaxed: only this thread stores USER with its own carrier; yield_wanted is a hint.  A fiber
	 * that is preempted here continues on another carrier; then c may be idle, without a processor.
	 */
	p = c->processor;
	if (FZ_UNLIKELY(!p ||
			atomic_load_explicit(&p->owner, memory_order_relaxed) !=
				((uintptr_t)c | FZ_OWNER_USER) ||
			atomic_load_explicit(&p->yield_wanted, memory_order_relaxed)))
		return fz_announce_end_slowly(self);
	return false;
}

/* ---- waiting alone ------------------------------------------------------ */

/*
 * A fiber is alone if no other fiber was runnable at its last FZ_ALONE_FROM waits, all of them for
 * descriptors.  It then waits by the program's own call, announced: one system call, as natively.  A
 * request would cost two changes of the signal mask and two switches besides, and pays only if it
 * shares system calls with other requests.  If other fibers need the processor during the call, a
 * carrier takes it; then the fiber makes requests again, for at least its next FZ_ALONE_AGAIN waits.
 */
enum {
	FZ_ALONE_FROM = 100,		/* waits one after the other */
	FZ_ALONE_MOVED,			/* alone, and already moved to another processor or carrier */
	FZ_ALONE_AGAIN = 2000,
};

/* The fiber parks.  others: another fiber is runnable.  By the carrier. */
static inline void fz_alone_note_wait(struct fz_fiber *self, bool others)
{
	const bool io = self->call.waits_for == FZ_FOR_REQUEST ||
			self->call.waits_for == FZ_FOR_READY;

	if (FZ_UNLIKELY(!others && io)) {
		self->call.was_alone = true;
		if (self->waits_alone < FZ_ALONE_FROM)
			self->waits_alone++;
	} else if (FZ_UNLIKELY(self->call.was_alone)) {
		self->call.was_alone = false;
		if (self->waits_alone > 0)
			self->waits_alone = 0;
	}
}

/* Another carrier took the fiber's processor while the fiber was in its code or in a call. */
static inline void fz_alone_note_loss(struct fz_fiber *self)
{
	if (self->waits_alone >= FZ_ALONE_FROM)
		self->waits_alone = -FZ_ALONE_AGAIN;
}

/* The rare part of fz_is_alone(). */
bool fz_alone_look(struct fz_fiber *self);

/*
 * The caller is about to wait for a descriptor: is it alone, so that it should make the real call,
 * announced?  May move the fiber to a processor without requests and deadlines, and to a carrier
 * without requests in flight, because their completions would interrupt the call.  Outside the
 * runtime; any thread.
 */
static inline bool fz_is_alone(struct fz_fiber *self)
{
	return FZ_UNLIKELY(self->call.was_alone) && self->waits_alone >= FZ_ALONE_FROM &&
	       fz_alone_look(self);
}

#endif
