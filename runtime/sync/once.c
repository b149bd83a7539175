/* SPDX-License-Identifier: MIT */
#include "runtime/sync/once.h"

#include "runtime/sched/park.h"
#include "runtime/sync/lot.h"

/*
 * Number of forks, in steps of FZ_ONCE_GENERATION; written in a fork's child, while it has one
 * thread.
 */
static uint32_t generation;

bool fz_once_begin(struct fz_once *o)
{
	const uint32_t ours = generation | FZ_ONCE_IN_PROGRESS;
	/* acquire, also in the loop: pairs with fz_once_end(). */
	uint32_t word = atomic_load_explicit(&o->word, memory_order_acquire);

	for (;;) {
		if (word & FZ_ONCE_DONE)
			return false;
		if (word == ours) {
			fz_lot_wait(&o->word, ours, FZ_FOREVER,
				    FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_ONCE));
			word = atomic_load_explicit(&o->word, memory_order_acquire);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(&o->word, &word, ours,
							  memory_order_acquire,
							  memory_order_acquire))
			return true;
	}
}

void fz_once_end(struct fz_once *o, bool done)
{
	/*
	 * release: pairs with the acquires; every thread that finds DONE sees what the routine
	 * did.
	 */
	atomic_store_explicit(&o->word, done ? FZ_ONCE_DONE : 0, memory_order_release);
	fz_lot_wake(&o->word, UINT32_MAX);
}

void fz_once_after_fork(void)
{
	generation += FZ_ONCE_GENERATION;
}
