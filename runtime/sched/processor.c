/* SPDX-License-Identifier: MIT */
/*
 * runtime/sched/processor.c - which carrier has a processor (runtime/sched/sched.h): entering and
 * leaving the runtime, taking a processor away, stealing fibers from one.
 */
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/sched_internal.h"

#include "runtime/base/host.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/stack_probe.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/signal.h"

struct fz_processor *fz_processor_of(const struct fz_fiber *self)
{
	return self->carrier->processor;
}

struct fz_processor *fz_processor_or_none(const struct fz_fiber *self)
{
	return self->kind == FZ_KIND_FIBER ? fz_processor_of(self) : NULL;
}

bool fz_sched_has_company(const struct fz_fiber *self)
{
	/*
	 * Outside the runtime another carrier may have the processor: only read it.  It may be
	 * NULL: if the fiber is preempted here, it continues on another carrier, and the carrier
	 * that was read may be idle by then.
	 */
	struct fz_processor *p = self->carrier->processor;

	return !p || (fz_ring_shares_calls(&p->backend.ring) &&
		      (atomic_load_explicit(&p->runq.length, memory_order_relaxed) ||
		       atomic_load_explicit(&p->runq.slot, memory_order_relaxed) ||
		       fz_backend_queued(&p->backend)));
}

/*
 * Wake a carrier that waits in the kernel, for one more fiber.  If none waits, ask the monitor for
 * a carrier, if there is a processor that no carrier runs.
 */
void fz_sched_kick(void)
{
	struct fz_processor *unused = NULL;

	fz_tick_note_runnable();
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];
		const uintptr_t owner = owner_load(p);
		bool waits;

		if (fz_processor_is_closed(p))
			break;
		switch (owner & FZ_OWNER_STATE_MASK) {
		case FZ_OWNER_WAITING:
			/* seq_cst: pairs with the store in note_kick(). */
			if (atomic_exchange_explicit(&p->kicked, true,
						     memory_order_seq_cst))
				break;
			/*
			 * After the exchange: whoever takes p for a fiber of its own looks at no queue, and may have
			 * called fz_processor_send_off() before.  Then `owner` differs, and another carrier must look.
			 */
			waits = owner_load(p) == owner;
			fz_backend_kick(&p->backend);
			if (waits)
				return;
			break;
		case FZ_OWNER_FREE:
		case FZ_OWNER_ANNOUNCED:
			if (!unused)
				unused = p;
			break;
		default:
			break;
		}
	}
	if (unused)
		fz_monitor_want_carrier();
}

void fz_sched_hasten(struct fz_processor *p)
{
	/* relaxed, both: hints, and the caller sets them again. */
	atomic_store_explicit(&p->poll_wanted, true, memory_order_relaxed);
	atomic_store_explicit(&p->hastened, true, memory_order_relaxed);
	if (fz_ring_has_asked(&p->backend.ring) && (owner_load(p) & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING)
		fz_backend_kick(&p->backend);
}

/* Steal half of the fibers that are queued on another processor; returns the first one. */
static struct fz_fiber *steal_queued(struct fz_processor *p)
{
	uint32_t start = (uint32_t)(p - fz_sched.processors);

	for (uint32_t i = 1; i < fz_sched.count; i++) {
		struct fz_processor *victim =
			&fz_sched.processors[(start + i) % fz_sched.count];
		struct fz_fiber *f = fz_runq_steal(&victim->runq, &p->runq);

		if (f)
			return f;
	}
	return NULL;
}

/*
 * Steal from the slot of another processor, only if that processor has been running one fiber
 * for long, or no carrier runs it: the monitor has set yield_wanted then.
 */
static struct fz_fiber *steal_slot(struct fz_processor *p)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *victim = &fz_sched.processors[i];
		struct fz_fiber *f;

		/* relaxed: a hint. */
		if (victim == p ||
		    !atomic_load_explicit(&victim->yield_wanted, memory_order_relaxed))
			continue;
		f = fz_runq_pop_slot(&victim->runq);
		if (f)
			return f;
	}
	return NULL;
}

struct fz_fiber *fz_processor_steal(struct fz_processor *p)
{
	struct fz_fiber *f = steal_queued(p);

	return f ? f : steal_slot(p);
}

void fz_processor_send_off(struct fz_processor *p)
{
	fz_backend_note_loser(&p->backend);
	fz_backend_kick(&p->backend);
	/* A kick had told p's old carrier to fetch a queued fiber: tell another carrier.  seq_cst: as in note_kick(). */
	if (atomic_exchange_explicit(&p->kicked, false, memory_order_seq_cst))
		fz_sched_kick();
}

/* Take a processor that no carrier runs.  Returns false if there is none. */
static bool take_unused(struct fz_carrier *c)
{
	struct fz_processor *first = c->processor;
	uint32_t start = first ? (uint32_t)(first - fz_sched.processors) : 0;

	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[(start + i) % fz_sched.count];
		uintptr_t owner = owner_load(p);

		if (fz_processor_is_closed(p))
			continue;
		switch (owner & FZ_OWNER_STATE_MASK) {
		case FZ_OWNER_WAITING:
		case FZ_OWNER_ANNOUNCED:
		case FZ_OWNER_FREE:
			if (!owner_cas(p, owner, owner_word(c, FZ_OWNER_RUNTIME)))
				break;
			c->processor = p;
			if ((owner & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING)
				fz_processor_send_off(p);
			fz_monitor_note_activity();
			return true;
		default:
			break;
		}
	}
	return false;
}

/*
 * Take the processor of a CPU-bound fiber, as the monitor does: a fiber that has lost its processor
 * in a brief call must not wait behind CPU-bound fibers.
 */
static bool displace(struct fz_carrier *c)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];
		uintptr_t owner = owner_load(p);
		const struct fz_carrier *loser = (void *)(owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);

		/* relaxed: a hint; records of carriers and fibers are never unmapped. */
		if ((owner & FZ_OWNER_STATE_MASK) != FZ_OWNER_USER || fz_processor_is_closed(p) ||
		    !fz_fiber_is_cpu_bound(atomic_load_explicit(&loser->running,
								memory_order_relaxed)) ||
		    !owner_cas(p, owner, owner_word(c, FZ_OWNER_RUNTIME)))
			continue;
		fz_count_total(FZ_TOTAL_processors_taken, 1);
		fz_trace_note_preempted(loser);
		c->processor = p;
		return true;
	}
	return false;
}

/* The caller owns p, in RUNTIME. */
static inline void count_entry(struct fz_processor *p)
{
	uint32_t n = atomic_load_explicit(&p->entries, memory_order_relaxed);

	/* relaxed: the monitor samples. */
	atomic_store_explicit(&p->entries, n + 1, memory_order_relaxed);
}

static void get_processor_slowly(struct fz_fiber *self)
{
	/* Take a sample: the monitor does not look at carriers without a processor. */
	fz_cputime_sample(self->carrier);
	fz_alone_note_loss(self);
	/* A CPU-bound fiber lost its processor because other fibers wait, maybe for this processor: let them run first. */
	if (fz_fiber_is_cpu_bound(self)) {
		if (take_unused(self->carrier))
			fz_sched_yield(self);
		else
			fz_sched_queue_up(self);
	} else if (!take_unused(self->carrier) && !displace(self->carrier)) {
		fz_sched_queue_up(self);
	}
	/*
	 * Without a processor the fiber was not seen by the monitor, which may have checked all waits meanwhile and
	 * gone to sleep: the count tells it that there may be one more.
	 */
	count_entry(fz_processor_of(self));
	if (fz_trace_on())
		fz_trace_back(self);
}

bool fz_sched_move(struct fz_fiber *self, bool (*fits)(struct fz_carrier *))
{
	struct fz_carrier *c = self->carrier;
	struct fz_backend *backend = &c->processor->backend;

	c->successor = fz_carrier_take(fits);
	if (!c->successor)
		return false;
	/* The successor must have no requests in flight, so this carrier submits what other fibers have queued. */
	if (fz_backend_queued(backend))
		fz_backend_submit(backend);
	fz_sched_to_context(self, FZ_LEFT_MOVED);
	return true;
}

static bool back_from_announced(struct fz_processor *p, struct fz_carrier *c)
{
	if (!owner_cas(p, owner_word(c, FZ_OWNER_ANNOUNCED), owner_word(c, FZ_OWNER_RUNTIME)))
		return false;
	/* The monitor may have gone to sleep while the call lasted; it must watch this processor again. */
	fz_monitor_note_activity();
	return true;
}

/* The carrier has got back the processor that it had before: no other carrier had it in between. */
static inline void entered(struct fz_fiber *self, struct fz_processor *p)
{
	count_entry(p);
	if (FZ_UNLIKELY(atomic_load_explicit(&p->yield_wanted, memory_order_relaxed)))
		fz_sched_yield(self);
}

/* Not inlined, so that fz_enter_runtime() saves no registers for it. */
__attribute__((noinline)) static void enter_slowly(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_processor *p = c->processor;

	if (!back_from_announced(p, c)) {
		get_processor_slowly(self);
		return;
	}
	if (fz_trace_on())
		fz_trace_back(self);
	entered(self, p);
}

void fz_enter_runtime(struct fz_fiber *self)
{
	struct fz_carrier *c;
	struct fz_processor *p;

	fz_stack_probe(self, FZ_STACK_ROOM);
	FZ_ASSERT(atomic_load_explicit(&self->in_runtime, memory_order_relaxed) == 0);
	/* relaxed, and a signal fence: only handlers on this thread read in_runtime. */
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (self->kind != FZ_KIND_FIBER)
		return;
	c = self->carrier;
	p = c->processor;
	if (FZ_LIKELY(owner_cas(p, owner_word(c, FZ_OWNER_USER),
				owner_word(c, FZ_OWNER_RUNTIME))))
		entered(self, p);
	else
		enter_slowly(self);
}

void fz_block_in_runtime(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	fz_lock_check_none_held("fz_block_in_runtime");
	/* release: as in fz_leave_runtime(). */
	if (self->kind == FZ_KIND_FIBER)
		atomic_store_explicit(&c->processor->owner, owner_word(c, FZ_OWNER_USER), memory_order_release);
}

void fz_block_in_runtime_end(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (self->kind == FZ_KIND_FIBER &&
	    !owner_cas(c->processor, owner_word(c, FZ_OWNER_USER), owner_word(c, FZ_OWNER_RUNTIME)))
		enter_slowly(self);
}

void fz_leave_runtime(struct fz_fiber *self)
{
	fz_lock_check_none_held("fz_leave_runtime");
	if (self->kind == FZ_KIND_FIBER) {
		struct fz_carrier *c;

		/*
		 * A signal for the process must be handled before the program sees what the
		 * sender did next.  relaxed: the signal came to this kernel thread, or the monitor
		 * routes it.
		 */
		if (FZ_UNLIKELY(atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed)) &&
		    !self->call.blocks)
			fz_signal_route_arrived();
		c = self->carrier;

		/*
		 * release: pairs with the owner_cas() of a thread that takes the processor.  Only
		 * the owner may change RUNTIME.
		 */
		atomic_store_explicit(&c->processor->owner, owner_word(c, FZ_OWNER_USER),
				      memory_order_release);
	}
	enter_user_code(self);
	/*
	 * relaxed: a later pthread_cancel nudges this thread.  Not while a handler returns:
	 * cancellation would unwind with all signals blocked.  Nor while the thread is barred.
	 */
	if (FZ_UNLIKELY(atomic_load_explicit(&self->cancel.sent, memory_order_relaxed)) &&
	    !self->sig.handler_ends && !self->sig.barred && fz_cancel_is_asynchronous(self))
		fz_host.test_cancel();
}

bool fz_processor_has_work(struct fz_processor *p, fz_nsec now)
{
	return fz_runq_length(&p->runq) ||
	       atomic_load_explicit(&p->runq.slot, memory_order_relaxed) ||
	       (!fz_processor_is_closed(p) &&
		(fz_runq_length(&fz_sched.global) || fz_runq_length(&fz_sched.births))) ||
	       fz_backend_has_completions(&p->backend) ||
	       fz_timers_earliest(&p->timers) <= now;
}

bool fz_sched_has_queued(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_runq *queue = &fz_sched.processors[i].runq;

		if (fz_runq_length(queue) || atomic_load_explicit(&queue->slot, memory_order_relaxed))
			return true;
	}
	return false;
}

bool fz_processor_take(struct fz_processor *p, uintptr_t seen_owner)
{
	struct fz_carrier *c = (void *)(seen_owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);

	for (;;) {
		/* RUNTIME without a carrier: no other thread takes p until the caller passes it on. */
		if (!owner_cas(p, seen_owner, owner_word(NULL, FZ_OWNER_RUNTIME)))
			return false;
		if (fz_carrier_hand_off(p))
			return true;
		/* No carrier is idle yet.  A carrier that comes back from a call may take p. */
		seen_owner = owner_word(c, FZ_OWNER_ANNOUNCED);
		atomic_store_explicit(&p->owner, seen_owner, memory_order_seq_cst);
		/* One may have become idle meanwhile, because it could not take p; from here on it tells the monitor. */
		fz_monitor_lack_carrier();
		if (!fz_carrier_has_spare())
			return false;
		/* The monitor is not to sleep with that wish: who asks for a carrier finds it, and does not poke. */
		fz_monitor_poke();
	}
}

void fz_processor_announce(struct fz_processor *p, uintptr_t seen_owner)
{
	struct fz_carrier *c = (void *)(seen_owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);

	owner_cas(p, seen_owner, owner_word(c, FZ_OWNER_ANNOUNCED));
}

bool fz_processor_needs_carrier(struct fz_processor *p)
{
	return fz_backend_in_flight(&p->backend) || p->timers.used || fz_processor_has_work(p, 0);
}

void fz_processor_let_go(struct fz_processor *p)
{
	if (fz_carrier_hand_off(p))
		return;
	/* seq_cst: pairs with the monitor's loads of owner, which find ANNOUNCED. */
	atomic_store_explicit(&p->owner, owner_word(NULL, FZ_OWNER_ANNOUNCED),
			      memory_order_seq_cst);
	fz_monitor_want_carrier();
}

void fz_sched_give_up(struct fz_fiber *self)
{
	/* Submit nothing: requests of this kernel thread would complete late.  The next carrier submits them. */
	fz_processor_let_go(fz_processor_of(self));
}

void fz_processor_receive(struct fz_carrier *c, struct fz_fiber *fiber)
{
	struct fz_processor *to = c->yields_to;
	/* A closed processor that has never had a carrier gets none before it is opened: nobody would serve its queue. */
	const bool unserved = fz_processor_is_closed(to) && owner_load(to) == FZ_OWNER_FREE;

	c->yields_to = NULL;
	fz_runq_push(unserved ? &fz_sched.global : &to->runq, fiber);
	/* seq_cst, before `closed` is read: pairs with go_idle(), which reads `closed` before the queue. */
	atomic_thread_fence(memory_order_seq_cst);
	/* The carrier of a closed processor may have emptied the queue before this push, and wait in the kernel now. */
	if (fz_processor_is_closed(to) && !unserved)
		fz_backend_kick(&to->backend);
	else
		fz_sched_kick();
}
