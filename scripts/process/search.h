/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_SEARCH_H
#define PROCESS_SEARCH_H

/*
 * scripts/process/search.h - where in a process or a core file the library's description is, by the note
 * in the library that tells its address.
 */

#include <stdbool.h>
#include <stdint.h>

#include "source.h"
#include "target.h"

struct search {
	const struct target *target;
	uint64_t base;			/* of the object that has the description */
	uint64_t found;			/* address of the description; 0: not found */
	unsigned reads;			/* how often its memory was read */
};

/* For each mapping of the target, until it returns false; arg: a struct search. */
bool search_look_at(void *arg, const struct mapping *m);

/*
 * The loader maps all of a library from its first byte on, and then each part over that where it belongs.
 * Has it mapped the part with the description?
 */
bool search_is_mapped(const struct target *t, const struct search *search);

#endif
