/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_PS_H
#define INSPECT_PS_H

/*
 * scripts/inspect/ps.h - what fiberize ps has found, to be printed as text or as JSON.
 */

#include "asleep.h"
#include "graph.h"

struct ps {
	bool hex, count_only, tree, stop;
	const struct target *target;
	struct fibers all;
	struct sleepers sleepers;	/* empty if count_only */
	struct wait_facts *facts;	/* one for each of all.list; NULL if count_only */
	struct graph graph;
	const struct fiber **shown;	/* the threads to be printed, sorted; in all.list and all.library */
	size_t shown_count;
	double stopped_ms;		/* if stop: how long the process was stopped, in all tries */
	bool consistent;		/* if stop: no thread has run while the process was read */
};

extern const char *const ps_states[STATE_COUNT];

/*
 * Tell in words what the thread waits for, and why it has a kernel thread of its own; "" if neither
 * holds.  facts is NULL for a thread of the library.
 */
void ps_detail(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size);

/* Make the line "3 threads on 2 processors: 1 runs 2 waits". states[s] is the number of threads in state s. */
void ps_summary(const struct fibers *all, const size_t *states, char *line, size_t size);

void ps_print_text(const struct ps *ps);
void ps_print_json(const struct ps *ps);

#endif
