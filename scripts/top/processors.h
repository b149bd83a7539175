/* SPDX-License-Identifier: MIT */
#ifndef TOP_PROCESSORS_H
#define TOP_PROCESSORS_H

/*
 * scripts/top/processors.h - samples what the processors do: this tool looks at them many times.  The
 * library does not count that, so it costs the process nothing.
 *
 * How busy a processor is, is measured by the CPU time of the kernel threads that have it.  Samples
 * would be wrong: the kernel often lets this tool run just when the process waits, and in a wait for
 * requests a kernel thread may use CPU time.
 */

#include "runtime/base/counters.h"
#include "scripts/process/target.h"
#include "scripts/process/tasks.h"

enum doing {
	DOING_BUSY,			/* runs the program */
	DOING_LIBRARY,			/* runs the library */
	DOING_CALL,			/* its carrier is in a call that may wait, so another may take it */
	DOING_IDLE,			/* waits for something to run */
	DOING_COUNT
};

struct processor {
	unsigned seen[DOING_COUNT];	/* at how many looks */
	enum doing doing;		/* at the last look */
	uint64_t queued, queued_sum;	/* fibers in its run queue: at the last look, at all looks */
	/* Of the kernel threads while they had the processor: CPU time; and time in which they waited for a CPU. */
	uint64_t cpu_ns, delayed_ns;
};

struct processors {
	size_t count;
	unsigned looks;
	uint64_t queued;		/* fibers in all queues, the global ones included, at the last look */
	struct processor list[FZ_PROCESSORS_MOST];
};

/* Forget all looks. */
void processors_begin(struct processors *all);

/* Look once, in a few system calls.  What cannot be read counts as 0.  tasks: from the last picture. */
void processors_look(struct processors *all, const struct target *t, const struct tasks *tasks);

/* Seconds from one look to the next; more if there are many processors. */
double processors_pause(const struct processors *all);

/* The share of all looks, per cent, that found the processor doing what. */
double processor_share(const struct processors *all, size_t number, enum doing what);

/* Of the looks that found the processor running program or library: the share of the library, per cent. */
double processor_library(const struct processors *all, size_t number);

#endif
