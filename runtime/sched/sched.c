/* SPDX-License-Identifier: MIT */
#include "runtime/sched/sched_internal.h"

#include "runtime/base/time.h"
#include "runtime/fiber/cputime.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/birth.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"

enum {
	FLUSH_AFTER = 128,	/* switches that a queued request may wait */
	POLL_AFTER = 128,	/* switches between looks at a busy ring */
	GLOBAL_AFTER = 61,	/* every so many switches the global queue comes first */
	BIRTH_AFTER = 16,	/* every so many switches a new fiber comes first */
	REAP_MOST = 16,		/* completions handled at a time */
	REAP_BELOW = 2,		/* completions are handled when at most so many fibers wait */
	SLOT_STREAK = 32,	/* consecutive times that the fiber in the slot may jump the queue */
};

struct fz_sched fz_sched;

/* ---- finding work ------------------------------------------------------- */

static void note_kick(struct fz_processor *p, bool kicked)
{
	if (kicked)
		/* seq_cst: a thread that pushes after this store kicks again; the carrier sees earlier pushes. */
		atomic_store_explicit(&p->kicked, false, memory_order_seq_cst);
}

static void reap(struct fz_processor *p, uint32_t most)
{
	bool kicked = false;

	p->since_poll = 0;
	fz_backend_reap(&p->backend, most, &kicked);
	note_kick(p, kicked);
}

static void poll_backend(struct fz_processor *p)
{
	bool kicked = false;

	p->since_poll = 0;
	fz_backend_poll(&p->backend, &kicked);
	note_kick(p, kicked);
}

static void expire_timers(struct fz_processor *p)
{
	if (fz_timers_earliest(&p->timers) != FZ_FOREVER)
		fz_timers_expire(&p->timers, fz_now());
}

/*
 * Pick a fiber that may be starving: new, in the global queue, CPU-bound, or overtaken through
 * the slot.
 */
static struct fz_fiber *pick_starving(struct fz_processor *p)
{
	struct fz_fiber *f;

	atomic_store_explicit(&p->starving_wanted, false, memory_order_relaxed);
	if (fz_backend_has_completions(&p->backend))
		reap(p, REAP_MOST);
	fz_runq_empty_slot(&p->runq);
	p->next_streak = SLOT_STREAK;
	if (p->starving_looks / 2 % 2 && ((f = fz_birth_pop()) || (f = fz_runq_pop(&fz_sched.global))))
		return f;
	return fz_runq_pop_cpu_bound(&p->runq);
}

/*
 * Is it time to look at the backend and the timers?  CPU-bound fibers take too long for POLL_AFTER
 * switches, and a carrier learns only in a system call that its request is complete.
 */
static bool poll_is_due(struct fz_processor *p)
{
	/* relaxed: any value that was ever stored will do. */
	const uint64_t pause = atomic_load_explicit(&fz_sched.poll_cycles, memory_order_relaxed);
	uint64_t now;

	if (FZ_UNLIKELY(!pause)) {
		/* Nothing is measured yet; note the time even so: "fiberize ps" tells since when a thread waits. */
		p->picked_at = atomic_load_explicit(&fz_sched.cycles_are_cheap, memory_order_relaxed) ?
			fz_cycles() : 0;
		return false;
	}
	p->picked_at = now = fz_cycles();
	if (FZ_LIKELY(now - p->polled_at < pause))
		return false;
	p->polled_at = now;
	return fz_backend_wants_poll(&p->backend) ||
	       fz_timers_earliest(&p->timers) != FZ_FOREVER;
}

/* pick() for a closed processor: send all its fibers to the global queue, and kick another carrier for them. */
__attribute__((cold, noinline)) static struct fz_fiber *send_away(struct fz_processor *p)
{
	struct fz_fiber *f;

	if (fz_backend_wants_poll(&p->backend))
		poll_backend(p);
	reap(p, UINT32_MAX);
	expire_timers(p);
	while ((f = fz_runq_pop(&p->runq)) || (f = fz_runq_pop_slot(&p->runq)))
		fz_runq_push(&fz_sched.global, f);
	if (fz_runq_length(&fz_sched.global) || fz_runq_length(&fz_sched.births))
		fz_sched_kick();
	return NULL;
}

/* The next fiber that p can run without waiting, or NULL. */
static struct fz_fiber *pick(struct fz_processor *p)
{
	struct fz_fiber *f;
	uint32_t switches = atomic_load_explicit(&p->switches, memory_order_relaxed);

	/* relaxed: only this carrier writes it; the monitor samples. */
	atomic_store_explicit(&p->switches, switches + 1, memory_order_relaxed);
	if (fz_processor_is_closed(p))
		return send_away(p);
	atomic_store_explicit(&p->yield_wanted, false, memory_order_relaxed);

	/*
	 * Wake some fibers, run them, then handle more completions.  In one large batch, what
	 * waking the first fiber brought into the cache would be gone when that fiber runs.
	 */
	if (fz_backend_has_completions(&p->backend)) {
		if (FZ_UNLIKELY(fz_backend_is_crowded(&p->backend)))
			reap(p, UINT32_MAX);
		else if (fz_runq_brief(&p->runq) <= REAP_BELOW)
			reap(p, REAP_MOST);
	}
	if (++p->since_poll >= POLL_AFTER || poll_is_due(p) ||
	    FZ_UNLIKELY(atomic_load_explicit(&p->poll_wanted, memory_order_relaxed))) {
		atomic_store_explicit(&p->poll_wanted, false, memory_order_relaxed);
		poll_backend(p);
		expire_timers(p);
		p->since_flush = 0;
	}
	if (fz_backend_queued(&p->backend) && ++p->since_flush >= FLUSH_AFTER) {
		p->since_flush = 0;
		fz_backend_submit(&p->backend);
	}
	/* Every second time only: the fibers that pick_starving() finds may each run for long. */
	if (FZ_UNLIKELY(atomic_load_explicit(&p->starving_wanted, memory_order_relaxed)) &&
	    p->starving_looks++ % 2 == 0 && (f = pick_starving(p)))
		return f;
	if (switches % GLOBAL_AFTER == 0 && (f = fz_runq_pop(&fz_sched.global)))
		return f;
	if (switches % BIRTH_AFTER == 0 && (f = fz_birth_pop()))
		return f;
	if (p->next_streak < SLOT_STREAK) {
		f = fz_runq_pop_slot(&p->runq);
		if (f) {
			p->next_streak++;
			return f;
		}
	}
	p->next_streak = 0;
	/* CPU-bound fibers are behind all others, whichever queue those are in. */
	if (fz_runq_brief(&p->runq) <= 0 &&
	    ((fz_runq_brief(&fz_sched.global) > 0 && (f = fz_runq_pop(&fz_sched.global))) ||
	     (f = fz_birth_pop())))
		return f;
	if (!(f = fz_runq_pop(&p->runq)))
		f = fz_runq_pop_slot(&p->runq);
	return f ? f : fz_runq_pop(&fz_sched.global);
}

/* ---- making fibers runnable --------------------------------------------- */

/*
 * The open processor that the calling fiber or carrier has in RUNTIME; NULL if there is none.  A
 * fiber in fz_lot_wake_staying() has none: it sets in_runtime without entering the runtime.
 */
static struct fz_processor *own_processor(struct fz_fiber *self)
{
	struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER && self->kind != FZ_KIND_CARRIER)
		return NULL;
	p = self->carrier->processor;
	return p && owner_load(p) == owner_word(self->carrier, FZ_OWNER_RUNTIME) &&
			       !fz_processor_is_closed(p) ? p : NULL;
}

void fz_sched_ready(struct fz_fiber *fiber)
{
	struct fz_processor *p = own_processor(fz_self());

	fz_tick_note_runnable();
	if (!p) {
		fz_runq_push(&fz_sched.global, fiber);
		fz_sched_kick();
		return;
	}
	if (FZ_UNLIKELY(fz_fiber_is_cpu_bound(fiber)))
		fz_runq_push(&p->runq, fiber);
	else
		fz_runq_push_slot(&p->runq, fiber);
	/* A fiber in the slot is for this carrier; fibers in the queue can be shared. */
	if (fz_sched.count > 1 && fz_runq_length(&p->runq))
		fz_sched_kick();
}

/* ---- switching ---------------------------------------------------------- */

/* After a switch: queue, bury or pass on the context left.  Not inlined, so that a wait saves fewer registers. */
__attribute__((noinline)) static void place(struct fz_carrier *c, struct fz_fiber *left,
					    enum fz_left how)
{
	switch (how) {
	case FZ_LEFT_NOTHING:
	case FZ_LEFT_PARKED:
		break;
	case FZ_LEFT_YIELDED:
		if (FZ_UNLIKELY(c->yields_to != NULL))
			fz_processor_receive(c, left);
		else
			fz_runq_push(&c->processor->runq, left);
		break;
	case FZ_LEFT_ENDED:
		fz_fiber_buried(left);
		break;
	case FZ_LEFT_NO_PROCESSOR:
		fz_runq_push(&fz_sched.global, left);
		fz_sched_kick();
		break;
	case FZ_LEFT_MOVED:
		fz_carrier_pass_on(c, left);
		break;
	}
}

/* Runs on the new context, self, and deals with the context that the switch left. */
void fz_sched_arrived(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *left = c->left;
	enum fz_left how = c->left_how;

	c->left_how = FZ_LEFT_NOTHING;
	/* Not before the switch: the kernel changes no alternate stack that is in use. */
	if (FZ_UNLIKELY(self->has_alt_stack || c->alt_stack.sp || c->report_stack.sp))
		fz_alt_stack_load(self, c);
	if (FZ_UNLIKELY(c->kernel_mask == NO_SIGNALS))
		fz_signal_load_mask(c, self->kind == FZ_KIND_FIBER ? self->mask : FZ_SIGNALS_ALL);
	if (FZ_LIKELY(how == FZ_LEFT_PARKED))
		fz_wait_context_saved(left);
	else
		place(c, left, how);
	/* Only for fibers: a carrier's own context may count as CPU-bound, too, but its carrier may have no processor. */
	if (FZ_UNLIKELY(fz_fiber_is_cpu_bound(self)) && self->kind == FZ_KIND_FIBER && fz_sched.count > 1)
		fz_processor_share(c->processor);
}

static void switch_to(struct fz_carrier *c, struct fz_fiber *from, struct fz_fiber *to,
		      enum fz_left how)
{
	const uint64_t mask = to->kind == FZ_KIND_FIBER ? to->mask : FZ_SIGNALS_ALL;
	void *const sp = to->sp;

	fz_check_switch(c, from, to);
	if (FZ_LIKELY(to != c->context))
		fz_count(c->processor->counts, FZ_COUNT_switches, 1);
	if (FZ_UNLIKELY(c->block != NULL))
		fz_counting_switch(c, from, to, how);
	fz_trace_note_switch(c, from, to, how);
	c->left = from;
	c->left_how = how;
	to->carrier = c;
	/* relaxed: a fiber that this switch still takes for sampled is sampled until its next turn. */
	if (FZ_UNLIKELY(atomic_load_explicit(&fz_cputime_exact, memory_order_relaxed)))
		fz_cputime_switch(c, from, to);
	/* release: pairs with fz_cputime_sample() and running_time(). */
	atomic_store_explicit(&c->running, to, memory_order_release);
	if (fz_alt_stack_in_use(from))
		fz_signal_load_mask(c, NO_SIGNALS);
	/*
	 * A carrier's own context runs no handler of the program.  The mask is loaded before
	 * another carrier can run `from`, which may then block a signal that the kernel would
	 * still deliver to this kernel thread.
	 */
	else if (mask != c->kernel_mask)
		fz_signal_load_mask(c, mask);
	to->sp = NULL;
	fz_switch(&from->sp, sp, to->tcb);
	fz_sched_arrived(from);
}

/* Leave `self` for the next context; `how` says what becomes of self. */
static void switch_away(struct fz_fiber *self, enum fz_left how)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *next;

	fz_fiber_has_run(self);
	next = pick(c->processor);
	fz_alone_note_wait(self, next != NULL);
	/* Before the joiner runs, fz_sched_arrived() has buried self. */
	if (!next && how == FZ_LEFT_ENDED)
		next = fz_fiber_take_joiner(self);
	if (!next)
		next = c->context;
	self->waits.since = c->processor->picked_at & ~(uint64_t)FZ_SINCE_SAMPLED;
	/* A fiber is never queued before its context is saved. */
	FZ_ASSERT(next != self);
	switch_to(c, self, next, how);
}

void fz_sched_to_context(struct fz_fiber *self, enum fz_left how)
{
	switch_to(self->carrier, self, self->carrier->context, how);
}

void fz_sched_queue_up(struct fz_fiber *self)
{
	self->carrier->processor = NULL;
	fz_sched_to_context(self, FZ_LEFT_NO_PROCESSOR);
}

void fz_sched_park(struct fz_fiber *self)
{
	switch_away(self, FZ_LEFT_PARKED);
}

bool fz_sched_yield(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *next;
	const uint16_t call = c->call;

	fz_fiber_has_run(self);
	next = pick(c->processor);
	if (!next && fz_processor_is_closed(c->processor)) {
		c->yields_to = NULL;
		switch_to(c, self, c->context, FZ_LEFT_NO_PROCESSOR);
		self->carrier->call = call;
		return true;
	}
	if (next) {
		switch_to(c, self, next, FZ_LEFT_YIELDED);
		self->carrier->call = call;
	} else if (fz_backend_queued(&c->processor->backend)) {
		fz_backend_submit(&c->processor->backend);
	}
	return next != NULL;
}

void fz_sched_end(struct fz_fiber *self)
{
	/* A fiber that was wired has no processor. */
	(FZ_LIKELY(self->carrier->processor != NULL) ? switch_away : fz_sched_to_context)(self, FZ_LEFT_ENDED);
}

/* ---- a carrier's own context -------------------------------------------- */

/*
 * No fiber is runnable: wait in the kernel.  If the processor is taken during the wait, by another
 * carrier or by the monitor, this carrier has none afterwards.
 */
static void go_idle(struct fz_carrier *c, struct fz_processor *p)
{
	uintptr_t waiting = owner_word(c, FZ_OWNER_WAITING);
	struct fz_arrivals arrivals;
	uint32_t published;
	bool work = false, closed, waits, kicked = false, watches;
	fz_nsec until;

	arrivals.count = 0;
	fz_note_idle(p);
	if (!fz_backend_arm(&p->backend, c->tid)) {
		expire_timers(p);
		return;
	}
	published = fz_backend_publish(&p->backend);
	/* A submission to a full ring may have reaped the kick's event.  relaxed: a later kick has an event of its own. */
	note_kick(p, atomic_load_explicit(&p->kicked, memory_order_relaxed));
	atomic_store_explicit(&p->owner, waiting, memory_order_seq_cst);
	/* seq_cst, after the store: pairs with the fence of fz_provide_open(); if this misses its change, it sees WAITING. */
	closed = atomic_load_explicit(&p->closed, memory_order_seq_cst);
	/* A thread that queued a fiber before it could see WAITING has not kicked: look again. */
	for (uint32_t i = 0; i < fz_sched.count && !work && !closed; i++)
		work = fz_runq_length(&fz_sched.processors[i].runq) != 0;
	until = fz_timers_earliest(&p->timers);
	watches = !closed && fz_birth_watch_begin();
	if (watches && until > fz_now() + FZ_POLL_PAUSE)
		until = fz_now() + FZ_POLL_PAUSE;
	/* A fiber pushed to a closed processor just before WAITING must still go to the global queue. */
	waits = closed ? !fz_runq_length(&p->runq) : !work && !fz_runq_length(&fz_sched.global);
	if (waits)
		fz_backend_wait(&p->backend, published, until, &arrivals);
	if (watches)
		fz_birth_watch_end();
	if (!owner_cas(p, waiting, owner_word(c, FZ_OWNER_RUNTIME))) {
		c->processor = NULL;
		fz_backend_note_left(&p->backend);
		fz_count_outside(FZ_COUNT_enters, waits);
		fz_backend_deliver(&p->backend, &arrivals, false, &kicked);
		return;
	}
	fz_count(p->counts, FZ_COUNT_enters, waits);
	p->since_flush = p->since_poll = 0;
	fz_backend_finish_wait(&p->backend, published);
	fz_backend_deliver(&p->backend, &arrivals, true, &kicked);
	fz_backend_reap(&p->backend, REAP_MOST, &kicked);
	note_kick(p, kicked);
	expire_timers(p);
	fz_monitor_note_activity();
}

void fz_sched_run_carrier(struct fz_carrier *c)
{
	struct fz_fiber *self = c->context;

	for (;;) {
		struct fz_processor *p = c->processor;
		struct fz_fiber *next;

		if (!p) {
			if (!fz_carrier_sleep(c))
				return;
			continue;
		}
		next = c->first ? c->first : pick(p);
		c->first = NULL;
		if (!next && !fz_processor_is_closed(p) && (next = fz_processor_steal(p)))
			fz_count(p->counts, FZ_COUNT_steals, 1);
		if (next) {
			switch_to(c, self, next, FZ_LEFT_NOTHING);
			continue;
		}
		if (fz_backend_in_flight(&p->backend) || p->timers.used ||
		    fz_processor_is_closed(p) || !fz_birth_watch_begin()) {
			go_idle(c, p);
			continue;
		}
		fz_birth_await();
		fz_birth_watch_end();
	}
}
