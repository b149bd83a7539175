/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SCHED_INTERNAL_H
#define FZ_RUNTIME_SCHED_SCHED_INTERNAL_H

/*
 * runtime/sched/sched_internal.h - what the files of this room share: the owner word of a
 * processor, and waiting for a processor.
 */

#include "runtime/sched/sched.h"

static inline uintptr_t owner_word(struct fz_carrier *c, enum fz_owner_state state)
{
	return (uintptr_t)c | state;
}

static inline bool owner_cas(struct fz_processor *p, uintptr_t from, uintptr_t to)
{
	/*
	 * seq_cst: acquire takes over what the previous owner wrote, release
	 * publishes what this one wrote; and an idle carrier's WAITING must be ordered
	 * before its last look at the queues (pairs with fz_sched_kick()).
	 */
	return atomic_compare_exchange_strong_explicit(&p->owner, &from, to,
						       memory_order_seq_cst,
						       memory_order_relaxed);
}

static inline uintptr_t owner_load(struct fz_processor *p)
{
	/* seq_cst: pairs with owner_cas() in go_idle(), see fz_sched_kick(). */
	return atomic_load_explicit(&p->owner, memory_order_seq_cst);
}

/* Does p have requests or deadlines that a carrier must wait for, or runnable fibers? */
bool fz_processor_needs_carrier(struct fz_processor *p);

/*
 * The calling fiber has no processor.  The carrier's own context pushes the fiber to the global
 * queue once the fiber's context is saved, and sleeps.  The fiber continues on any carrier.
 */
void fz_sched_queue_up(struct fz_fiber *self);

/* Use the record of an ended carrier for the calling kernel thread, with this context. */
void fz_carrier_begin_again(struct fz_carrier *c, struct fz_fiber *context);

/* The kernel thread of c is about to end. */
void fz_carrier_ended(struct fz_carrier *c);

/* The two halves of fz_carrier_sleep(): go onto the idle list; sleep until woken. */
void fz_carrier_push_idle(struct fz_carrier *c);
bool fz_carrier_await(struct fz_carrier *c);

void fz_carrier_idle_after_fork(void);
void fz_carrier_thread_after_fork(void);

#endif
