/* SPDX-License-Identifier: MIT */
#ifndef TOP_PROCESSORS_H
#define TOP_PROCESSORS_H

/*
 * scripts/top/processors.h - what the processors do, by looking many times: the library keeps no
 * account of that, so that it costs the process nothing.
 */

#include "runtime/base/counters.h"
#include "scripts/inspect/target.h"

enum doing {
	DOING_BUSY,			/* runs the program */
	DOING_LIBRARY,			/* runs the library */
	DOING_CALL,			/* is in a call that may wait; another carrier may take it */
	DOING_IDLE,			/* has nothing to run */
	DOING_COUNT
};

struct processor {
	unsigned seen[DOING_COUNT];	/* how often */
	enum doing doing;		/* at the last look */
	uint64_t queued, queued_sum;	/* fibers in its run queue: at the last look, at all looks */
};

struct processors {
	size_t count;
	unsigned looks;
	uint64_t queued;		/* fibers in the queues of all, at the last look */
	struct processor list[FZ_PROCESSORS_MOST];
};

/* Forget all looks. */
void processors_begin(struct processors *all);

/* Look once, in a few system calls.  What cannot be read is left out. */
void processors_look(struct processors *all, const struct target *t);

/* Of all looks, per cent. */
double processor_share(const struct processors *all, size_t number, enum doing what);

#endif
