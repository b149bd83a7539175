/* SPDX-License-Identifier: MIT */
#include "runtime/sched/announce.h"

#include "runtime/base/probe.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/sched/spawner.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/signal.h"

void fz_announce(struct fz_fiber *self)
{
	struct fz_processor *p;
	bool wanted;

	if (self->kind != FZ_KIND_FIBER)
		return;
	fz_counting_outcome(self->carrier, FZ_OUTCOME_ANNOUNCED);
	fz_enter_runtime(self);
	FZ_PROBE2(announce, self->thread.tid, self->carrier->tid);
	if (fz_trace_on())
		fz_trace_announce(self);
	p = fz_processor_of(self);
	if (fz_backend_queued(&p->backend))
		fz_backend_submit(&p->backend);
	wanted = fz_processor_needs_carrier(p);
	if (!wanted || !fz_carrier_hand_off(p)) {
		/* seq_cst: a thread that queues a fiber and misses this finds the monitor awake. */
		atomic_store_explicit(&p->owner,
				      owner_word(self->carrier, FZ_OWNER_ANNOUNCED),
				      memory_order_seq_cst);
		if (wanted)
			fz_monitor_want_carrier();
	}
	enter_user_code(self);
}

/*
 * The processor was taken or given up during the call, or other fibers wait for it.  The caller
 * queues up for a processor here: a fiber that makes only brief calls enters the runtime nowhere
 * else, and would run without a processor for ever.
 */
bool fz_announce_end_slowly(struct fz_fiber *self)
{
	const struct fz_carrier *c = self->carrier;
	const struct fz_processor *p = c->processor;
	/* relaxed: only this thread writes USER with its own name; with anything else there, the processor is lost. */
	bool kept = p && atomic_load_explicit(&p->owner, memory_order_relaxed) ==
				 ((uintptr_t)c | FZ_OWNER_USER);

	if (!kept && self->carrier->call_owned)
		fz_counting_outcome(self->carrier, FZ_OUTCOME_LATE);
	fz_enter_runtime(self);
	fz_leave_runtime(self);
	return !kept;
}

/* ---- waiting alone ------------------------------------------------------ */

/* Take a processor that nobody uses, and for which nothing is on its way.  NULL: there is none. */
static struct fz_processor *take_quiet(struct fz_carrier *c)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];
		const uintptr_t owner = owner_load(p);
		const enum fz_owner_state state = owner & FZ_OWNER_STATE_MASK;

		if ((state != FZ_OWNER_FREE && state != FZ_OWNER_WAITING) ||
		    fz_processor_is_closed(p) || fz_processor_needs_carrier(p) ||
		    !owner_cas(p, owner, owner_word(c, FZ_OWNER_RUNTIME)))
			continue;
		if (state == FZ_OWNER_WAITING)
			fz_processor_send_off(p);
		return p;
	}
	return NULL;
}

/* Leave the processor, to which something is on its way, to another carrier, for a quiet one. */
static bool change_processor(struct fz_carrier *c)
{
	struct fz_processor *before = c->processor, *quiet = take_quiet(c);

	if (!quiet) {
		/* relaxed: a hint for the monitor. */
		atomic_store_explicit(&fz_sched.quiet_wanted, true, memory_order_relaxed);
		return false;
	}
	if (fz_backend_queued(&before->backend))
		fz_backend_submit(&before->backend);
	c->processor = quiet;
	fz_processor_let_go(before);
	fz_monitor_note_activity();
	return true;
}

static bool move(struct fz_fiber *self)
{
	bool moved;

	/* It makes requests, too, or shares each processor: no moving at each wait. */
	if (self->waits_alone == FZ_ALONE_MOVED) {
		self->waits_alone = -FZ_ALONE_AGAIN;
		return false;
	}
	fz_enter_runtime(self);
	moved = !fz_processor_needs_carrier(fz_processor_of(self)) || change_processor(self->carrier);
	if (moved && fz_carrier_has_requests(self->carrier)) {
		moved = fz_sched_move(self);
		/* All idle carriers have requests in flight, too: one without is there at the next try. */
		if (!moved)
			fz_spawner_want_mortal();
	}
	fz_leave_runtime(self);
	/* If there was nowhere to go, try again after as many waits. */
	self->waits_alone = moved ? FZ_ALONE_MOVED : 0;
	return moved;
}

bool fz_alone_look(struct fz_fiber *self)
{
	struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER || self->call.blocks)
		return false;
	/* Such a wait, too, shows that it is not CPU-bound. */
	fz_fiber_has_run(self);
	/* Outside the runtime another carrier may have the processor: only read it. */
	p = self->carrier->processor;
	if (!p || owner_load(p) != owner_word(self->carrier, FZ_OWNER_USER) ||
	    fz_processor_is_closed(p) || fz_processor_has_work(p, 0) || fz_sched_has_queued())
		return false;
	/* A request's completion interrupts the call; made again, it may find another file. */
	return (!fz_processor_needs_carrier(p) && !fz_carrier_has_requests(self->carrier)) ||
	       move(self);
}
