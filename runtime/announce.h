/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_ANNOUNCE_H
#define FZ_RUNTIME_ANNOUNCE_H

/*
 * runtime/announce.h - real calls that usually return at once, and sometimes wait
 * for a disk, a server, or another process (design.md, rung 4).
 *
 * Unlike fz_announce() (runtime/sched.h), which is for a call that is about to wait
 * and hands the processor off before it, this costs some nanoseconds: the processor
 * goes only if the monitor finds the same call still there after a tick.
 *
 *	fz_announce_brief(self);
 *	ret = the real call
 *	fz_announce_end(self);
 *
 * Both: from a fiber, outside the runtime; nothing for other threads.  Handlers of
 * the program run during the call.  If the call does not return (cancellation,
 * longjmp), there is nothing to undo: the next fz_enter_runtime finds a processor.
 */

#include "runtime/carrier.h"
#include "runtime/sched.h"

static inline void fz_announce_brief(struct fz_fiber *self)
{
	struct fz_processor *p;
	uintptr_t owner;

	if (self->kind != FZ_KIND_FIBER)
		return;
	p = self->carrier->processor;
	owner = (uintptr_t)self->carrier | FZ_OWNER_USER;
	/* relaxed: the monitor samples; of two that count at once one may get lost. */
	atomic_store_explicit(&p->entries,
			      atomic_load_explicit(&p->entries, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	/*
	 * Fails if it was taken, or is announced already: we are a handler that
	 * interrupted such a call, or are called from inside one.
	 */
	atomic_compare_exchange_strong_explicit(&p->owner, &owner,
						(uintptr_t)self->carrier | FZ_OWNER_BRIEF,
						/* release: pairs with who takes it. */
						memory_order_release, memory_order_relaxed);
}

/* The rare cases of fz_announce_end(). */
bool fz_announce_end_slowly(struct fz_fiber *self);

/*
 * May let others run.  errno stays.  Returns true if the call was not brief at all:
 * the monitor has seen it at two looks.
 */
static inline bool fz_announce_end(struct fz_fiber *self)
{
	struct fz_processor *p;
	uintptr_t owner;

	if (self->kind != FZ_KIND_FIBER)
		return false;
	p = self->carrier->processor;
	owner = (uintptr_t)self->carrier | FZ_OWNER_BRIEF;
	if (FZ_UNLIKELY(!atomic_compare_exchange_strong_explicit(
			    &p->owner, &owner, (uintptr_t)self->carrier | FZ_OWNER_USER,
			    /* acquire: as owner_cas() in runtime/sched.c. */
			    memory_order_acquire, memory_order_relaxed) ||
			/* relaxed: a hint. */
			atomic_load_explicit(&p->yield_wanted, memory_order_relaxed)))
		return fz_announce_end_slowly(self);
	return false;
}

#endif
