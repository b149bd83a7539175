/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_SEARCH_H
#define PROCESS_SEARCH_H

/*
 * scripts/process/search.h - finds the library's description in a process or a core file. A note in the
 * library has its address.
 */

#include <stdbool.h>
#include <stdint.h>

#include "source.h"
#include "target.h"

struct search {
	const struct target *target;
	uint64_t base;			/* where the object that was searched last is mapped */
	uint64_t found;			/* address of the description; 0: not found */
	unsigned reads;			/* how often the target's memory was read */
};

/* Search one mapping. Call it for each mapping of the target until it returns false. arg is a struct search. */
bool search_look_at(void *arg, const struct mapping *m);

/*
 * Has the loader mapped the segment that has the description?  The loader first maps the whole library from
 * its first byte on, and then maps each segment over that, at its final place.
 */
bool search_is_mapped(const struct target *t, const struct search *search);

#endif
