/* SPDX-License-Identifier: MIT */
#include "runtime/sched/announce.h"

#include "runtime/base/probe.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched_internal.h"
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
	/* As in fz_announce_end(). */
	bool kept = p && atomic_load_explicit(&p->owner, memory_order_relaxed) ==
				 ((uintptr_t)c | FZ_OWNER_USER);

	if (!kept && self->carrier->call_owned)
		fz_counting_outcome(self->carrier, FZ_OUTCOME_LATE);
	fz_enter_runtime(self);
	fz_leave_runtime(self);
	return !kept;
}
