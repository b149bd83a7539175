/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_GRAPH_H
#define INSPECT_GRAPH_H

/*
 * scripts/inspect/graph.h - which thread waits for which: by mutexes, joins, and locks that a
 * thread holds for writing.
 */

#include "waits.h"

struct graph {
	const struct fibers *all;
	const struct wait_facts *facts;	/* of all->list, one each */
};

/* The place in the list of the thread that this one waits for; SIZE_MAX: none that is known. */
size_t graph_owner(const struct graph *g, size_t thread);

/*
 * Call found for a thread of each circle of threads that wait for each other.  A deadline ends a
 * wait, and with it the circle.  Returns how many.
 */
typedef void graph_visit(const struct graph *g, size_t thread, void *arg);
size_t graph_deadlocks(const struct graph *g, const struct target *t, graph_visit *found, void *arg);

/* Call visit for the threads of the circle that this one is in. */
void graph_circle(const struct graph *g, size_t thread, graph_visit *visit, void *arg);

/* Does each thread wait for another one, so that nothing but a signal can go on? */
bool graph_all_asleep(const struct graph *g);

/*
 * Call visit for each thread that another one waits for or that waits for another one: a thread
 * first, then those that wait for it.  A circle begins at any of its threads.
 */
typedef void graph_tree_visit(const struct graph *g, size_t thread, unsigned depth, void *arg);
void graph_tree(const struct graph *g, graph_tree_visit *visit, void *arg);

#endif
