/* SPDX-License-Identifier: MIT */
#include "runtime/sched/announce.h"

#include "runtime/base/probe.h"
#include "runtime/fiber/wire.h"
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
		/*
		 * seq_cst: fz_sched_kick() finds ANNOUNCED and tells the monitor; if it comes too
		 * early, the monitor is still awake.
		 */
		atomic_store_explicit(&p->owner,
				      owner_word(self->carrier, FZ_OWNER_ANNOUNCED),
				      memory_order_seq_cst);
		if (wanted)
			fz_monitor_want_carrier();
	}
	enter_user_code(self);
}

void fz_announce_undisturbed(struct fz_fiber *self)
{
	fz_fiber_wire_undisturbed(self, "a call that must not be interrupted");
	fz_announce(self);
}

/*
 * The processor was taken during the call, or given up before it, or other fibers wait for it.  The
 * caller queues up for a processor here, because a fiber that makes only brief calls enters the
 * runtime nowhere else: it would run without a processor for ever.
 */
bool fz_announce_end_slowly(struct fz_fiber *self)
{
	const struct fz_carrier *c = self->carrier;
	const struct fz_processor *p = c->processor;
	/* relaxed: only this thread stores USER with its own carrier; if anything else is there, the processor is lost. */
	bool kept = p && atomic_load_explicit(&p->owner, memory_order_relaxed) ==
				 ((uintptr_t)c | FZ_OWNER_USER);

	if (!kept && self->carrier->call_owned)
		fz_counting_outcome(self->carrier, FZ_OUTCOME_LATE);
	fz_enter_runtime(self);
	fz_leave_runtime(self);
	return !kept;
}

/* ---- waiting alone ------------------------------------------------------ */

/* Take a processor that nobody uses and that is quiet: it has no requests, deadlines or fibers.  NULL: there is none. */
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

/*
 * Exchange the processor, which has requests, deadlines or fibers, for a quiet one.  Another
 * carrier gets the old processor.
 */
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

	/*
	 * Moved before, and yet not quiet: the fiber makes requests, too, or shares its processor.
	 * Do not move at each wait.
	 */
	if (self->waits_alone == FZ_ALONE_MOVED) {
		self->waits_alone = -FZ_ALONE_AGAIN;
		return false;
	}
	fz_enter_runtime(self);
	moved = !fz_processor_needs_carrier(fz_processor_of(self)) || change_processor(self->carrier);
	if (moved && fz_carrier_has_requests(self->carrier)) {
		moved = fz_sched_move(self, fz_carrier_may_end);
		/* All idle carriers have requests in flight, too: ask for a carrier without any, for the next try. */
		if (!moved)
			fz_spawner_want_mortal();
	}
	fz_leave_runtime(self);
	/* If there was nowhere to move, try again after FZ_ALONE_FROM more waits. */
	self->waits_alone = moved ? FZ_ALONE_MOVED : 0;
	return moved;
}

bool fz_alone_look(struct fz_fiber *self)
{
	struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER || self->call.blocks)
		return false;
	/* A wait by an announced call, too, shows that the fiber is not CPU-bound. */
	fz_fiber_has_run(self);
	/* Outside the runtime another carrier may have the processor: only read it. */
	p = self->carrier->processor;
	if (!p || owner_load(p) != owner_word(self->carrier, FZ_OWNER_USER) ||
	    fz_processor_is_closed(p) || fz_processor_has_work(p, 0) || fz_sched_has_queued())
		return false;
	/*
	 * A completion for this carrier would interrupt the announced call.  The call, made again,
	 * might find another file.
	 */
	return (!fz_processor_needs_carrier(p) && !fz_carrier_has_requests(self->carrier)) ||
	       move(self);
}
