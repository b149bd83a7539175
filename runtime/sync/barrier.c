/* SPDX-License-Identifier: MIT */
#include "runtime/sync/barrier.h"

#include "runtime/sched/park.h"
#include "runtime/sync/lot.h"

static uint32_t round_of(uint64_t both)
{
	return (uint32_t)(both >> 32);
}

/*
 * Wait until `round` is over.  A thread that comes here when the round is over finds another value and
 * does not sleep.  The value has 32 bits: only a waiter that slept through 2^32 rounds would find an
 * equal value.
 */
static void await_round(struct fz_barrier *b, uint32_t round)
{
	/*
	 * acquire: pairs with arrive(); the caller sees what the other threads did before they
	 * arrived.
	 */
	while (round_of(atomic_load_explicit(&b->both, memory_order_acquire)) == round)
		fz_lot_wait(&b->round, round, FZ_FOREVER,
			    FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_BARRIER));
}

/* Count the caller in; the last thread of a round begins the next round.  Returns `both` as it was before. */
static uint64_t arrive(struct fz_barrier *b, uint32_t count)
{
	/* relaxed: the compare-and-swap orders. */
	uint64_t s = atomic_load_explicit(&b->both, memory_order_relaxed), to;

	do {
		to = s + 1;
		if ((uint32_t)to == count)
			to = (uint64_t)(round_of(s) + 1) << 32;
		/*
		 * acq_rel: release for the threads that leave (await_round); acquire for the last
		 * to arrive.
		 */
	} while (!atomic_compare_exchange_weak_explicit(&b->both, &s, to, memory_order_acq_rel,
							memory_order_relaxed));
	return s;
}

bool fz_barrier_wait(struct fz_barrier *b)
{
	uint32_t count = b->count;
	uint64_t s = arrive(b, count);
	bool last = (uint32_t)s + 1 == count;

	if (!last)
		await_round(b, round_of(s));
	else if (count > 1)
		fz_lot_wake(&b->round, UINT32_MAX);
	/* release: the caller's last access to b; pairs with fz_barrier_destroy(). */
	if (atomic_fetch_add_explicit(&b->left, 2, memory_order_release) & 1)
		fz_lot_wake(&b->left, UINT32_MAX);
	return last;
}

void fz_barrier_destroy(struct fz_barrier *b)
{
	/* relaxed: POSIX demands that the last round is complete before destroy. */
	uint64_t s = atomic_load_explicit(&b->both, memory_order_relaxed);
	uint32_t entered = round_of(s) * b->count * 2;
	/* acquire: pairs with the release in fz_barrier_wait(). */
	uint32_t left = atomic_fetch_or_explicit(&b->left, 1, memory_order_acquire) | 1;

	while (left != (entered | 1)) {
		fz_lot_wait(&b->left, left, FZ_FOREVER,
			    FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_BARRIER));
		left = atomic_load_explicit(&b->left, memory_order_acquire);
	}
}
