/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_COUNT_H
#define FZ_RUNTIME_BASE_COUNT_H

/*
 * runtime/base/count.h - functions that count.  runtime/base/counters.h says what is counted.
 *
 * A counter of a processor or a carrier has one writer, so that no cache line is shared and no
 * instruction is locked.  A handler may interrupt fz_add_here(), and add to that counter, too.
 */

#include "arch/arch.h"
#include "runtime/base/base.h"
#include "runtime/base/counters.h"

/*
 * Never NULL.  fz_counters_start_calls() may change it once, before there are fibers; and fz_counters_after_fork(), if
 * a fork's child has no memory.
 */
extern struct fz_counters *fz_counters FZ_HIDDEN;

/* All counters, including those of calls and times.  NULL if calls and times are not counted. */
extern struct fz_call_counters *fz_call_counters FZ_HIDDEN;

/* By the owner of the processor, in the runtime. */
static inline void fz_count(struct fz_processor_counts *counts, enum fz_processor_counter which,
			    uint64_t by)
{
	fz_add_here(&counts->count[which], by);
}

/* Any thread; the owner may be about to add. */
static inline uint64_t fz_count_read(const struct fz_processor_counts *counts,
				     enum fz_processor_counter which)
{
	/* relaxed: a counter. */
	return __atomic_load_n(&counts->count[which], __ATOMIC_RELAXED);
}

/* Like fz_count(), for a thread without a processor.  Any thread, any context. */
static inline void fz_count_outside(enum fz_processor_counter which, uint64_t by)
{
	/* relaxed: a counter. */
	__atomic_fetch_add(&fz_counters->processor[FZ_PROCESSORS_MOST].count[which], by,
			   __ATOMIC_RELAXED);
}

/* Any thread, any context. */
static inline void fz_count_total(enum fz_total which, int64_t by)
{
	/* relaxed: a counter. */
	atomic_fetch_add_explicit(&fz_counters->total[which], (uint64_t)by, memory_order_relaxed);
}

/* Raise a gauge that holds the largest value so far.  Any thread, any context. */
static inline void fz_count_most(enum fz_total which, uint64_t value)
{
	_Atomic uint64_t *most = &fz_counters->total[which];
	uint64_t old = atomic_load_explicit(most, memory_order_relaxed);

	while (FZ_UNLIKELY(value > old) &&
	       !atomic_compare_exchange_weak_explicit(most, &old, value, memory_order_relaxed,
						      memory_order_relaxed))
		continue;
}

/* Add 1 to *n, a counter in the block.  A shared block has several writers, so it needs an atomic addition. */
static inline void fz_count_in(struct fz_block *block, uint64_t *n)
{
	if (FZ_UNLIKELY(block < &fz_call_counters->block[FZ_BLOCKS_SHARED]))
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	else
		fz_add_here(n, 1);
}

/* Returns a block for a new carrier: a shared one if no other is left; NULL if calls are not counted. */
struct fz_block *fz_counters_block(void);

/* The shared block of the calling thread. */
static inline struct fz_block *fz_counters_shared_block(void)
{
	return &fz_call_counters->block[fz_tcb_get() / 4096 % FZ_BLOCKS_SHARED];
}

/* Returns the sum of what all blocks have counted in a row, which stands for a call.  Any thread, any context. */
struct fz_call_counts fz_counters_sum(unsigned row);

/* Count a fiber that becomes a kernel thread, by the reason why. */
void fz_count_wired(const char *why);

/*
 * Count calls from now on, too, beginning with 0.  By the constructor.  Returns false if there is no
 * memory.
 */
bool fz_counters_start_calls(void);

/*
 * Keep the counters in the file `path` from now on.  Before there is a second thread.  Returns 0,
 * -EEXIST if a living process counts in that file or if the file does not hold counters, or another
 * -errno.
 */
int fz_counters_to_file(const char *path, uint32_t processors);

/* Fill in the fields that do not change.  Not needed after fz_counters_start_calls(), which does so. */
void fz_counters_begin(void);

/* In a fork's child: begin to count from 0, and in memory, even if the parent counts in a file. */
void fz_counters_after_fork(void);

#endif
