/* SPDX-License-Identifier: MIT */
/*
 * tests/model/linear.c - the history of the operations, and whether some order of them, in which
 * none comes before one that had ended when it began, is what a sequential object would do
 * (Wing and Gong, 1993).
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#include <string.h>

enum { MOST = 24 };

/* What a run leaves here beyond M.operations is not looked at. */
static struct operation history[MOST];

int op_begin(int thread, int kind, int object, int arg)
{
	if (M.operations == MOST)
		model_outside("a longer history than linear.c has room for");
	reduce_use(OBJECT_HISTORY, false);
	history[M.operations] = (struct operation){ .thread = thread, .kind = kind,
						    .object = object, .arg = arg, .began = ++step };
	return (int)M.operations++;
}

long op_end(int op, long result)
{
	reduce_use(OBJECT_HISTORY, true);
	history[op].result = result;
	history[op].ended = ++step;
	return result;
}

static bool search(const struct scenario *s, uint32_t done, uint64_t state)
{
	const uint32_t all = (1u << M.operations) - 1;
	uint64_t first_end = FOREVER, next;

	if (done == all)
		return true;
	for (uint32_t i = 0; i < M.operations; i++)
		if (!(done & 1u << i) && history[i].ended && history[i].ended < first_end)
			first_end = history[i].ended;
	for (uint32_t i = 0; i < M.operations; i++) {
		if (done & 1u << i || history[i].began > first_end)
			continue;
		next = state;
		if (s->apply(&next, &history[i]) && search(s, done | 1u << i, next))
			return true;
	}
	return false;
}

void check_linear(const struct scenario *s)
{
	char text[1900];
	int n = 0;

	/* The search is no part of the run: apply() has hooks. */
	exploring = false;
	if (search(s, 0, 0))
		return;
	text[0] = '\0';
	for (uint32_t i = 0; i < M.operations && n < (int)sizeof(text) - 100; i++)
		n += __builtin_snprintf(text + n, sizeof(text) - (size_t)n,
					" [thread %d: op %d(%d,%d) = %ld, %lu..%lu]",
					history[i].thread, history[i].kind, history[i].object,
					history[i].arg, history[i].result,
					(unsigned long)history[i].began,
					(unsigned long)history[i].ended);
	model_fail("not linearizable:%s", text);
}
