/* SPDX-License-Identifier: MIT */
#ifndef TRACE_SUMS_H
#define TRACE_SUMS_H

/*
 * scripts/trace/sums.h - the calls of each function from each place, added up.  They outlive the
 * symbols and the timeline of which the calls are.
 */

#include <stdio.h>

#include "timeline.h"

struct sums {
	void *tree;
	size_t count;
};

void sums_add(struct sums *sums, const struct call *call);

/* Print a table, the longest wait first. */
void sums_print(const struct sums *sums, FILE *out);

/* The name of a call; the program may have computed, or sat in a call that the library does not see. */
const char *call_name(const struct call *call);

/* "before ", if only the next call is known.  None is if the fiber was interrupted. */
const char *call_before(const struct call *call);

#endif
