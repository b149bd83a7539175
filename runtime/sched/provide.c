/* SPDX-License-Identifier: MIT */
#include "runtime/sched/provide.h"

#include "runtime/fiber/cputime.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/signal/signal.h"

enum {
	/*
	 * Ticks without the carrier that is needed.  The carrier spawner may wait for a lock, as
	 * of the program's allocator, whose holder waits for a processor.
	 */
	LACKING_TICKS = 20,
	/* Looks one after the other that find a carrier at half a tick of CPU time or more. */
	CPU_BOUND_TICKS = 2,
};

static bool lacked;		/* for a processor since the last call of fz_provide_if_lacking() */
static uint32_t lacking;	/* such ticks one after the other */

bool fz_provide_carrier_for(struct fz_processor *p, uintptr_t owner)
{
	bool taken = fz_processor_take(p, owner);

	lacked |= !taken;
	return taken;
}

bool fz_provide_carrier(void)
{
	static const enum fz_owner_state order[] = { FZ_OWNER_ANNOUNCED, FZ_OWNER_FREE };

	bool failed = false;

	/* Announced processors come first: they may have requests in flight. */
	for (uint32_t i = 0; i < 2 * fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i % fz_sched.count];
		uintptr_t owner = owner_load(p);

		if ((owner & FZ_OWNER_STATE_MASK) != order[i / fz_sched.count])
			continue;
		if (fz_provide_carrier_for(p, owner))
			return true;
		failed = true;
	}
	return !failed;
}

/* tick: a fz_nsec */
static void preempt_if_cpu_bound(struct fz_carrier *c, void *tick)
{
	const bool first = lacking == LACKING_TICKS;
	const int tid = c->tid;
	uint64_t cpu_time = tid ? fz_cputime_of_tid(tid) : 0;
	bool cpu_bound = !first && cpu_time >= c->preempt.cpu_time + *(fz_nsec *)tick / 2;

	c->preempt.cpu_time = cpu_time;
	c->preempt.ticks = cpu_bound ? c->preempt.ticks + 1 : 0;
	if (c->preempt.ticks >= CPU_BOUND_TICKS)
		fz_signal_preempt(c);
}

void fz_provide_if_lacking(fz_nsec tick)
{
	if (FZ_LIKELY(!lacked && !lacking))
		return;
	lacking = lacked ? lacking + 1 : 0;
	lacked = false;
	/* CPU-bound carriers, with a processor or without. */
	if (FZ_UNLIKELY(lacking >= LACKING_TICKS))
		fz_carrier_each(preempt_if_cpu_bound, &tick);
}

void fz_provide_after_fork(void)
{
	lacked = false;
	lacking = 0;
}
