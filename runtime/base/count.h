/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_COUNT_H
#define FZ_RUNTIME_BASE_COUNT_H

/*
 * runtime/base/count.h - counting (runtime/base/counters.h says what).
 *
 * A counter of a processor or a carrier has one writer, so that no cache line is shared and no
 * instruction is locked.  While fz_add_here() adds, a handler on the same kernel thread may, too.
 */

#include "arch/arch.h"
#include "runtime/base/base.h"
#include "runtime/base/counters.h"

/* Never NULL.  It changes once, before there are fibers: fz_counters_start_calls(). */
extern struct fz_counters *fz_counters FZ_HIDDEN;

/* The counters, with those of calls and times; NULL if calls and times are not counted. */
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

/* What a thread without a processor counts.  Any thread, any context. */
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

/* Raise a gauge that holds the largest value. */
static inline void fz_count_most(enum fz_total which, uint64_t value)
{
	_Atomic uint64_t *most = &fz_counters->total[which];
	uint64_t old = atomic_load_explicit(most, memory_order_relaxed);

	while (FZ_UNLIKELY(value > old) &&
	       !atomic_compare_exchange_weak_explicit(most, &old, value, memory_order_relaxed,
						      memory_order_relaxed))
		continue;
}

/* Count in a block, which may be shared. */
static inline void fz_count_in(struct fz_block *block, uint64_t *n)
{
	if (FZ_UNLIKELY(block < &fz_call_counters->block[FZ_BLOCKS_SHARED]))
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	else
		fz_add_here(n, 1);
}

/* A block for a new carrier; a shared one when all are given; NULL: calls are not counted. */
struct fz_block *fz_counters_block(void);

/* The shared block of the calling thread. */
static inline struct fz_block *fz_counters_shared_block(void)
{
	return &fz_call_counters->block[fz_tcb_get() / 4096 % FZ_BLOCKS_SHARED];
}

/* What all blocks have counted of a call.  Any thread, any context. */
struct fz_call_counts fz_counters_sum(unsigned row);

/* A fiber becomes a kernel thread. */
void fz_count_wired(const char *why);

/*
 * By the constructor, and by the child of a fork: count calls from now on, from 0.  Returns false
 * if there is no memory.
 */
bool fz_counters_start_calls(void);

/*
 * Before there is a second thread: keep what is counted in the file path, from now on.  Returns 0;
 * -EEXIST: a living process counts there, or it is no file of counters; or -errno.
 */
int fz_counters_to_file(const char *path, uint32_t processors);

/* Fill in what does not change, unless fz_counters_start_calls() has. */
void fz_counters_begin(void);

/* In the child of a fork: from 0, not in a file. */
void fz_counters_after_fork(void);

#endif
