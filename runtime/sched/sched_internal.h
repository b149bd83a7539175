/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SCHED_INTERNAL_H
#define FZ_RUNTIME_SCHED_SCHED_INTERNAL_H

/*
 * runtime/sched/sched_internal.h - what the files of this room share: the owner word of a
 * processor, waiting for a processor, locks taken outside the runtime, and the checks at a switch.
 */

#include "runtime/base/lock.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/* A mask that blocks all signals, libc's own too.  Only during a switch. */
#define NO_SIGNALS (~(uint64_t)0)

static inline uintptr_t owner_word(struct fz_carrier *c, enum fz_owner_state state)
{
	return (uintptr_t)c | state;
}

/* The calling thread, which has left RUNTIME, is in user code from now on; handlers may run. */
static inline void enter_user_code(struct fz_fiber *self)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
	if (FZ_UNLIKELY(fz_signal_is_due(self)))
		fz_signal_run_pending(self);
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

/* Does another thread wait until p's owner submits or cancels requests (fz_sched_hasten())?  A hint. */
static inline bool fz_processor_is_awaited(const struct fz_processor *p)
{
	return fz_ring_has_asked(&p->backend.ring) ||
	       (atomic_load_explicit(&p->hastened, memory_order_relaxed) && fz_backend_queued(&p->backend));
}

/*
 * Call before p's owner runs a CPU-bound fiber: let other carriers have the fiber in the slot and the queued
 * fibers.  Nobody was kicked for them, because a fiber in the slot, or queued by a yield or a theft, expects to
 * wait only for a brief fiber.  By the owner.
 */
static inline void fz_processor_share(struct fz_processor *p)
{
	fz_runq_empty_slot(&p->runq);
	if (fz_runq_length(&p->runq))
		fz_sched_kick();
}

/* p has nothing to run.  relaxed: only the owner writes it; the monitor samples. */
static inline void fz_note_idle(struct fz_processor *p)
{
	const uint32_t n = atomic_load_explicit(&p->idles, memory_order_relaxed);

	atomic_store_explicit(&p->idles, n + 1, memory_order_relaxed);
}

/* Give p, which the caller owns in RUNTIME, to an idle carrier, or leave it to the monitor. */
void fz_processor_let_go(struct fz_processor *p);

/*
 * The caller has taken p from a carrier that waits in the kernel, and owns p now.  Make that carrier return
 * from the kernel and go to the idle list.
 */
void fz_processor_send_off(struct fz_processor *p);

/* Queue a fiber that has left c for another processor, c->yields_to. */
void fz_processor_receive(struct fz_carrier *c, struct fz_fiber *fiber);

/* Is a fiber queued on any processor, or in its slot?  Any thread; a hint. */
bool fz_sched_has_queued(void);

/* Does p have requests or deadlines that a carrier must wait for, or runnable fibers? */
bool fz_processor_needs_carrier(struct fz_processor *p);

/*
 * The calling fiber has no processor.  The carrier's own context pushes the fiber to the global
 * queue once the fiber's context is saved, and sleeps.  The fiber continues on any carrier.
 */
void fz_sched_queue_up(struct fz_fiber *self);

/* Leave the calling fiber for its carrier's own context. */
void fz_sched_to_context(struct fz_fiber *self, enum fz_left how);

/* Use c, the record of an ended carrier, for the calling kernel thread, whose own context is `context`. */
void fz_carrier_begin_again(struct fz_carrier *c, struct fz_fiber *context);

/* The kernel thread of c is about to end. */
void fz_carrier_ended(struct fz_carrier *c);

/* The two halves of fz_carrier_sleep(): go onto the idle list; sleep until woken. */
void fz_carrier_push_idle(struct fz_carrier *c);
bool fz_carrier_await(struct fz_carrier *c);

void fz_carrier_idle_after_fork(void);
void fz_carrier_thread_after_fork(void);

/* No handler of the program's can run: in the runtime, or with all signals blocked. */
static inline bool fz_bars_handlers(void)
{
	const struct fz_fiber *self = fz_self();

	return atomic_load_explicit(&self->in_runtime, memory_order_relaxed) || self->call.blocks;
}

/*
 * Can `to` run with its saved stack pointer?  The program may run a thread on a stack of its own, so any
 * address is possible except one in the guard of the thread's stack.
 */
static inline bool fz_sp_is_possible(const struct fz_carrier *c, const struct fz_fiber *to)
{
	const uintptr_t sp = (uintptr_t)to->sp, low = (uintptr_t)to->mem.stack;

	if (to == c->context)
		return !c->stack || sp - (uintptr_t)c->stack < c->stack_size;
	return !low || sp - (low - to->mem.guard_size) >= to->mem.guard_size;
}

/* Without a processor a carrier runs its own context only. */
static inline bool fz_carrier_may_run(const struct fz_carrier *c, const struct fz_fiber *to)
{
	return c->processor ? owner_load(c->processor) ==
				      ((uintptr_t)c | (uintptr_t)FZ_OWNER_RUNTIME) :
			      to == c->context;
}

/*
 * Asserts what must hold when a carrier leaves one context for another, and this invariant:
 *
 *	fz_fiber.sp is NULL  <=>  the context runs, or has never been left
 */
static inline void fz_check_switch(const struct fz_carrier *c, const struct fz_fiber *from,
				   const struct fz_fiber *to)
{
	/* relaxed: the context belongs to this carrier by now. */
	const uint64_t wait = atomic_load_explicit(&to->wait, memory_order_relaxed);

	fz_lock_check_none_held("a switch");
	FZ_ASSERT(from->carrier == c && !from->sp && c->left_how == FZ_LEFT_NOTHING);
	FZ_ASSERT(to->sp && (to->kind == FZ_KIND_FIBER || to == c->context));
	FZ_ASSERT((wait & FZ_WAIT_STATE_MASK) != FZ_WAIT_PARKED);
	FZ_ASSERT(atomic_load_explicit(&to->in_runtime, memory_order_relaxed));
	FZ_ASSERT_SLOW(fz_sp_is_possible(c, to) && fz_carrier_may_run(c, to));
	FZ_ASSERT_SLOW(!(atomic_load_explicit(&to->thread.life, memory_order_relaxed) &
			 (FZ_LIFE_ENDED | FZ_LIFE_FREE)));
}

#endif
