/* SPDX-License-Identifier: MIT */
#ifndef CHECK_LIBRARIES_H
#define CHECK_LIBRARIES_H

/*
 * scripts/check/libraries.h - which files the dynamic loader would load for a
 * program, in its order (ld.so(8)): DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the
 * cache, the default directories.
 */

#include "scripts/elf/object.h"

struct libraries {
	struct object **objects;	/* the program first; then breadth first */
	size_t count;
	char **missing;			/* names that were not found */
	size_t missing_count;
};

/* program stays the caller's; what is found is freed by libraries_free. */
void libraries_find(struct object *program, struct libraries *ret);
void libraries_free(struct libraries *l);

/* The file for one name that o needs, opened and read, or NULL. */
struct object *library_open(struct object *o, const char *name);

/* Is it a part of libc: libc.so.6, the loader, libpthread.so.0 and so on? */
bool library_is_libc(const struct object *o);

#endif
