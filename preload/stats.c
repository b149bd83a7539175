/* SPDX-License-Identifier: MIT */
/*
 * preload/stats.c - FIBERIZE_STATS=1: calls per symbol on standard error at exit.
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "runtime/base/die.h"
#include "runtime/base/fault.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

bool fz_stats_wanted;
_Atomic uint64_t fz_stats_calls[FZ_SYM_COUNT][2];

__attribute__((destructor)) static void print(void)
{
	if (!fz_stats_wanted)
		return;
	if (atomic_load_explicit(&fz_sched.started, memory_order_relaxed))
		fz_say("running, %u processors, %u carriers, %s", fz_sched.count,
		       fz_carrier_count(), fz_describe_backend());
	else
		fz_say("dormant");
	fz_redirect_say();
	fz_fault_say();
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		/* relaxed: counters. */
		uint64_t real = atomic_load_explicit(&fz_stats_calls[i][0],
						     memory_order_relaxed);
		uint64_t fiber = atomic_load_explicit(&fz_stats_calls[i][1],
						      memory_order_relaxed);

		if (real + fiber)
			fz_say("%s (%s): %lu by fibers, %lu passed through",
			       fz_symbol_name(i), fz_symbol_rung(i), (unsigned long)fiber,
			       (unsigned long)real);
	}
}
