/* SPDX-License-Identifier: MIT */
#ifndef TOP_PROCESSORS_H
#define TOP_PROCESSORS_H

/*
 * scripts/top/processors.h - what the processors do, by looking many times: the library keeps no
 * account of that, so that it costs the process nothing.
 *
 * How busy they are is told by the CPU time of the kernel threads that have them.  Looks would not
 * tell: the kernel lets this tool run when the others wait, and while a kernel thread waits for
 * requests, the kernel works for it.
 */

#include "runtime/base/counters.h"
#include "scripts/process/target.h"
#include "scripts/process/tasks.h"

enum doing {
	DOING_BUSY,			/* runs the program */
	DOING_LIBRARY,			/* runs the library */
	DOING_CALL,			/* is in a call that may wait; another carrier may take it */
	DOING_IDLE,			/* waits for something to run */
	DOING_COUNT
};

struct processor {
	unsigned seen[DOING_COUNT];	/* how often */
	enum doing doing;		/* at the last look */
	uint64_t queued, queued_sum;	/* fibers in its run queue: at the last look, at all looks */
	uint64_t cpu_ns;		/* used by the kernel threads that had it */
};

struct processors {
	size_t count;
	unsigned looks;
	uint64_t queued;		/* fibers in the queues of all, at the last look */
	struct processor list[FZ_PROCESSORS_MOST];
};

/* Forget all looks. */
void processors_begin(struct processors *all);

/* Look once, in a few system calls.  What cannot be read is left out.  tasks: of the last picture. */
void processors_look(struct processors *all, const struct target *t, const struct tasks *tasks);

/* Seconds between two looks: many processors take longer. */
double processors_pause(const struct processors *all);

/* Of all looks, per cent. */
double processor_share(const struct processors *all, size_t number, enum doing what);

/* Of the looks that found it at work, those that found it in the library, per cent. */
double processor_library(const struct processors *all, size_t number);

#endif
