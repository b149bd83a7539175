/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_PS_H
#define INSPECT_PS_H

/*
 * scripts/inspect/ps.h - what fiberize ps has found, for the two forms in which it prints it.
 */

#include "graph.h"

struct ps {
	bool hex, count_only, tree, stop;
	const struct target *target;
	struct fibers all;
	struct wait_facts *facts;	/* of all.list, one each; NULL if count_only */
	struct graph graph;
	const struct fiber **shown;	/* in order; of all.list and all.library */
	size_t shown_count;
	double stopped_ms;		/* in all; with stop */
	bool consistent;		/* with stop: no thread has run while it was read */
};

extern const char *const ps_states[STATE_COUNT];

/*
 * What the thread waits for, and why it has a kernel thread of its own; empty if there is nothing.
 * facts: NULL for the library's own threads.
 */
void ps_detail(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size);

/* "3 threads on 2 processors: 1 runs 2 waits"; states: how many are in each. */
void ps_summary(const struct fibers *all, const size_t *states, char *line, size_t size);

void ps_print_text(const struct ps *ps);
void ps_print_json(const struct ps *ps);

#endif
