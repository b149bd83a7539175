/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_GRAPH_H
#define INSPECT_GRAPH_H

/*
 * scripts/inspect/graph.h - which thread waits for which other thread: for the other's mutex, the other's
 * write lock, or the other's end (join).
 */

#include "waits.h"

struct graph {
	const struct fibers *all;
	const struct wait_facts *facts;	/* one for each of all->list */
};

/* The place in all->list of the thread that this thread waits for; SIZE_MAX: none or unknown. */
size_t graph_owner(const struct graph *g, size_t thread);

/*
 * Find deadlocks: circles of threads that wait for each other.  A circle in which a wait has a deadline
 * is none.  Call found for one thread of each circle.  Returns the number of circles.
 */
typedef void graph_visit(const struct graph *g, size_t thread, void *arg);
size_t graph_deadlocks(const struct graph *g, const struct target *t, graph_visit *found, void *arg);

/* Call visit for each thread of the circle that this thread is in. */
void graph_circle(const struct graph *g, size_t thread, graph_visit *visit, void *arg);

/* Does each thread wait for something that only another thread can do?  Then only a signal can help. */
bool graph_all_asleep(const struct graph *g, const struct target *t);

/*
 * Call visit for each thread that waits for another one or that another one waits for.  Each thread
 * comes before those that wait for it.  A circle begins at any of its threads.
 */
typedef void graph_tree_visit(const struct graph *g, size_t thread, unsigned depth, void *arg);
void graph_tree(const struct graph *g, graph_tree_visit *visit, void *arg);

#endif
