/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_PRIORITY_H
#define FZ_RUNTIME_SYNC_PRIORITY_H

/*
 * runtime/sync/priority.h - real-time priorities: the parking lot wakes the waiter with the highest
 * priority first, as the kernel does for a futex.  A fiber has the priority of the process.
 */

#include "runtime/base/base.h"

/*
 * Call this when a thread gets a real-time priority of its own: from now on waiters are woken by their
 * priorities, and waiters of one priority in the order of their arrival.  Any thread.
 */
void fz_priority_heed(void);

extern _Atomic bool fz_priority_is_heeded FZ_HIDDEN;

uint8_t fz_priority_ask(void);

/* Returns the real-time priority of the calling thread.  0: none, or fz_priority_heed() has not been called. */
static inline uint8_t fz_priority_own(void)
{
	/* relaxed: as natively, a thread that waits already keeps its place. */
	if (FZ_LIKELY(!atomic_load_explicit(&fz_priority_is_heeded, memory_order_relaxed)))
		return 0;
	return fz_priority_ask();
}

#endif
