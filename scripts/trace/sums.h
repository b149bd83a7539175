/* SPDX-License-Identifier: MIT */
#ifndef TRACE_SUMS_H
#define TRACE_SUMS_H

/*
 * scripts/trace/sums.h - adds up the calls of each function from each place.  The sums stay valid when
 * the symbols and the timeline of the calls are freed.
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

/* The name of a call; "-" if the fiber computed, or was in a call that the library does not see. */
const char *call_name(const struct call *call);

/*
 * "before " if the fiber computed, or was in an unknown call, and the caller of its next call is known.
 * Otherwise "".
 */
const char *call_before(const struct call *call);

#endif
