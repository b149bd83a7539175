/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_COUNTERS_H
#define FZ_RUNTIME_BASE_COUNTERS_H

/*
 * runtime/base/counters.h - what the library counts: its place in memory and in a file, which
 * "fiberize stat" reads from outside (scripts/inspect/).
 *
 * A process always has a struct fz_counters.  With FIBERIZE_STATS it is the head of a struct
 * fz_call_counters, which may be a mapped file, and counted.calls is not 0.  All numbers except
 * gauges only grow.  Readers take no lock: each number is right, but two numbers may be read at
 * slightly different moments.
 */

#include <stdatomic.h>
#include <stdint.h>

#define FZ_COUNTERS_MAGIC "fzcount"
enum {
	FZ_COUNTERS_VERSION = 1,
	FZ_COUNTED_CALLS = 400,		/* rows; row 0: not in a call.  Symbols come after it */
	FZ_COUNTED_WAITS = 24,		/* kinds of waits, at most */
	FZ_COUNTED_REASONS = 16,	/* why fibers are wired, at most */
	FZ_TIME_BUCKETS = 40,		/* bucket n: from 2^n to less than 2^(n + 1) ns; bucket 0: 0 ns, too */
	FZ_BLOCKS_SHARED = 4,		/* the first blocks, which several threads write */
	FZ_BLOCKS_MOST = 160,
	FZ_PROCESSORS_MOST = 256,
	FZ_TIME_SAMPLE = 61,		/* one of so many wake-ups is timed */
};

enum fz_processor_counter {
#define FZ_PROCESSOR_COUNTER(name, help) FZ_COUNT_##name,
#define FZ_TOTAL(name, kind, help)
#include "runtime/base/counters.def"
	FZ_PROCESSOR_COUNTERS
};

enum fz_total {
#define FZ_PROCESSOR_COUNTER(name, help)
#define FZ_TOTAL(name, kind, help) FZ_TOTAL_##name,
#include "runtime/base/counters.def"
	FZ_TOTALS
};

/* What the owner of one processor counts; one cache line. */
struct fz_processor_counts {
	_Alignas(64) uint64_t count[8];
};
_Static_assert(FZ_PROCESSOR_COUNTERS <= 8, "a cache line");

/* What first became of a call.  A fiber's call without an outcome was answered at once. */
enum fz_outcome {
	FZ_OUTCOME_PARKED,		/* the fiber waited, others ran */
	FZ_OUTCOME_ANNOUNCED,		/* the processor was handed off before the real call */
	FZ_OUTCOME_LATE,		/* the processor was taken during the real call */
	FZ_OUTCOME_WIRED,		/* the fiber became a kernel thread for it */
	FZ_OUTCOMES
};

struct fz_call_counts {
	uint64_t by_fibers;
	uint64_t passed;		/* passed through: by native threads, or while dormant */
	uint64_t outcome[FZ_OUTCOMES];
};

struct fz_times {
	uint64_t bucket[FZ_TIME_BUCKETS];
	uint64_t sum;			/* ns */
};

/* What one carrier counts; a shared block is for all other threads. */
struct fz_block {
	_Alignas(64) struct fz_call_counts calls[FZ_COUNTED_CALLS];
	uint64_t waits[FZ_COUNTED_WAITS];	/* parked fibers, by enum fz_waits_for */
	struct fz_times to_run;		/* from runnable to running */
	struct fz_times to_complete;	/* from parked to runnable */
};

struct fz_counters {
	char magic[8];
	uint32_t version;
	uint32_t pid;
	uint64_t size;			/* bytes, with the blocks */
	uint32_t processors;		/* 0: no thread was made yet */
	uint32_t calls;			/* rows that are counted; 0: without FIBERIZE_STATS */
	uint32_t blocks;		/* the number of blocks that there is room for */
	_Atomic uint32_t blocks_used;
	uint64_t begin;			/* s since 1970 */
	char program[32], backend[16];
	struct {
		_Atomic uint32_t state;	/* 0: free; 1: why is being written; 2: valid */
		char why[60];
		_Atomic uint64_t count;
	} wired[FZ_COUNTED_REASONS];
	_Atomic uint64_t total[FZ_TOTALS];
	/* One for each processor; the last one is for threads without a processor. */
	struct fz_processor_counts processor[FZ_PROCESSORS_MOST + 1];
};

struct fz_call_counters {
	struct fz_counters counted;
	struct {
		char name[32], rung[16];
	} calls[FZ_COUNTED_CALLS];
	char waits[FZ_COUNTED_WAITS][24];
	struct fz_block block[FZ_BLOCKS_MOST];
};

#endif
