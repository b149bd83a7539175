/* SPDX-License-Identifier: MIT */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "scripts/process/say.h"

static void *zeros(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (!memory)
		die(EXIT_OTHER, "no memory for %zu threads", count);
	return memory;
}

size_t graph_owner(const struct graph *g, size_t i)
{
	const struct fiber *owner = g->facts[i].owner ? fibers_by_tid(g->all, g->facts[i].owner) :
							NULL;

	return owner ? (size_t)(owner - g->all->list) : SIZE_MAX;
}

void graph_circle(const struct graph *g, size_t first, graph_visit *visit, void *arg)
{
	size_t at = first;

	do {
		visit(g, at, arg);
		at = graph_owner(g, at);
	} while (at != first && at != SIZE_MAX);
}

/*
 * The threads were read one after the other, so what they wait for may never have been true at one moment.  If first
 * each of them is found to wait for the same once more, and then each of them has been in its wait since the first
 * reading, it is true of the time between: a thread that waits takes no lock and gives none back.
 */
typedef bool check(const struct graph *g, const struct target *t, size_t thread);

static bool is_same(const struct graph *g, const struct target *t, size_t i)
{
	const struct wait_facts *before = &g->facts[i];
	struct wait_facts now;

	wait_read(t, g->all, &g->all->list[i], &now);
	return now.owner == before->owner && now.address == before->address && now.by_threads == before->by_threads;
}

static bool goes_on(const struct graph *g, const struct target *t, size_t i)
{
	return wait_goes_on(t, &g->all->list[i], &g->facts[i]);
}

static bool is_each_in_circle(const struct graph *g, const struct target *t, size_t first, check *is_true)
{
	size_t at = first;

	do {
		if (!is_true(g, t, at))
			return false;
		at = graph_owner(g, at);
	} while (at != first && at != SIZE_MAX);
	return at == first;
}

static bool is_each(const struct graph *g, const struct target *t, check *is_true)
{
	for (size_t i = 0; i < g->all->count; i++)
		if (!is_true(g, t, i))
			return false;
	return g->all->count != 0;
}

/* Is the circle of first a deadlock? */
static bool is_real(const struct graph *g, const struct target *t, size_t first)
{
	return is_each_in_circle(g, t, first, is_same) && is_each_in_circle(g, t, first, goes_on);
}

/* Does the thread wait, without a deadline? */
static bool may_last(const struct graph *g, size_t i)
{
	return *g->facts[i].kind && !g->facts[i].has_deadline;
}

size_t graph_deadlocks(const struct graph *g, const struct target *t, graph_visit *found, void *arg)
{
	uint32_t *visited = zeros(g->all->count, sizeof(*visited));
	size_t circles = 0;

	for (size_t i = 0; i < g->all->count; i++) {
		size_t at = i;

		while (at != SIZE_MAX && !visited[at] && may_last(g, at)) {
			visited[at] = (uint32_t)i + 1;
			at = graph_owner(g, at);
		}
		if (at == SIZE_MAX || visited[at] != (uint32_t)i + 1 || !may_last(g, at) || !is_real(g, t, at))
			continue;
		circles++;
		found(g, at, arg);
	}
	free(visited);
	return circles;
}

static bool waits_for_threads(const struct graph *g, const struct target *t, size_t i)
{
	(void)t;
	return g->facts[i].by_threads;
}

bool graph_all_asleep(const struct graph *g, const struct target *t)
{
	return is_each(g, t, waits_for_threads) && is_each(g, t, is_same) && is_each(g, t, goes_on);
}

/*
 * Which threads wait for each thread, as linked lists: first[i] begins the list of thread i, next[i] is
 * behind thread i in the list that contains i. Both hold a thread's place in all->list plus 1; 0: none.
 */
struct tree {
	uint32_t *first, *next;
	bool *seen;
};

static uint32_t unseen(const struct tree *tree, uint32_t link)
{
	while (link && tree->seen[link - 1])
		link = tree->next[link - 1];
	return link;
}

static void descend(const struct graph *g, struct tree *tree, size_t root, graph_tree_visit *visit,
		    void *arg)
{
	size_t at = root;
	unsigned depth = 0;

	for (;;) {
		uint32_t link = unseen(tree, tree->first[at]);

		tree->seen[at] = true;
		visit(g, at, depth++, arg);
		while (!link && at != root) {
			link = unseen(tree, tree->next[at]);
			at = graph_owner(g, at);
			depth--;
		}
		if (!link)
			return;
		at = link - 1;
	}
}

/* Thread i waits, directly or through others, for the threads of a circle. Returns one of these. */
static size_t on_circle(const struct graph *g, size_t i)
{
	size_t slow = i, fast = i;

	do {
		slow = graph_owner(g, slow);
		fast = graph_owner(g, graph_owner(g, fast));
	} while (slow != fast);
	return slow;
}

void graph_tree(const struct graph *g, graph_tree_visit *visit, void *arg)
{
	const size_t count = g->all->count;
	struct tree tree = {
		.first = zeros(count, sizeof(*tree.first)),
		.next = zeros(count, sizeof(*tree.next)),
		.seen = zeros(count, sizeof(*tree.seen)),
	};

	for (size_t i = count; i-- > 0;) {
		const size_t owner = graph_owner(g, i);

		if (owner == SIZE_MAX || owner == i)
			continue;
		tree.next[i] = tree.first[owner];
		tree.first[owner] = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < count; i++)
		if (tree.first[i] && graph_owner(g, i) == SIZE_MAX)
			descend(g, &tree, i, visit, arg);
	/* The threads not seen yet are on circles, or wait for threads on circles. */
	for (size_t i = 0; i < count; i++)
		if (!tree.seen[i] && (tree.first[i] || graph_owner(g, i) == i))
			descend(g, &tree, on_circle(g, i), visit, arg);
	free(tree.first);
	free(tree.next);
	free(tree.seen);
}
