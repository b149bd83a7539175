/* SPDX-License-Identifier: MIT */
#include "runtime/sched/counting.h"

#include "runtime/sched/park.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/sched.h"

_Static_assert((int)FZ_FOR_COUNT <= FZ_COUNTED_WAITS, "each kind of wait has a counter");

static void add_time(struct fz_block *block, struct fz_times *times, uint64_t cycles)
{
	/* relaxed: any value that was ever stored will do. */
	const uint64_t pause = atomic_load_explicit(&fz_sched.poll_cycles, memory_order_relaxed);
	unsigned bucket;
	uint64_t ns;

	/* Below 0: `cycles` is a difference between two CPUs' counters, and one is a little behind. */
	if (!pause || (int64_t)cycles < 0)
		return;
	ns = cycles / pause * FZ_POLL_PAUSE + cycles % pause * FZ_POLL_PAUSE / pause;
	bucket = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;
	if (bucket >= FZ_TIME_BUCKETS)
		bucket = FZ_TIME_BUCKETS - 1;
	fz_count_in(block, &times->bucket[bucket]);
	/* A shared block may lose a little of the sum. */
	fz_add_here(&times->sum, ns);
}

void fz_counting_runs(struct fz_carrier *c, struct fz_fiber *fiber)
{
	const uint64_t since = fiber->waits.since;

	fiber->waits.since = 0;
	add_time(c->block, &c->block->to_run, fz_cycles() - since);
}

void fz_counting_sample(struct fz_carrier *c, struct fz_fiber *fiber)
{
	const uint8_t what = fiber->call.waits_for;
	uint64_t now;

	/* waits.since is 0 where the cycle counter is expensive to read. */
	if (!fiber->waits.since)
		return;
	c->until_sample = FZ_TIME_SAMPLE - 1;
	now = fz_cycles();
	if (what == FZ_FOR_REQUEST || what == FZ_FOR_READY)
		add_time(c->block, &c->block->to_complete, now - fiber->waits.since);
	fiber->waits.since = now | FZ_SINCE_SAMPLED;
}
