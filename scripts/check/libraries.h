/* SPDX-License-Identifier: MIT */
#ifndef CHECK_LIBRARIES_H
#define CHECK_LIBRARIES_H

/*
 * scripts/check/libraries.h - finds the files that the dynamic loader would load for a program.
 * It searches in the loader's order (ld.so(8)): DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache,
 * the default directories. Then it adds the libraries that strings in the program name, because the
 * program may load them by dlopen.
 */

#include "scripts/elf/object.h"

struct libraries {
	struct object **objects;	/* the program, then its libraries breadth first */
	size_t count;
	size_t needed_count;		/* objects loaded at start; after them come those for dlopen */
	char **missing;			/* names that were not found */
	size_t missing_count;
	char *odd;			/* of the first of these that has one, struct object's odd; or NULL */
};

/* Find all libraries of program. libraries_free() closes them, but not program itself. */
void libraries_find(struct object *program, struct libraries *ret);
void libraries_free(struct libraries *l);

/*
 * Find, open and read the library that o needs by this name; NULL if there is none.  The loader ends the program, or waits,
 * if it comes to a FIFO, a device or a directory of this name: then o->odd says "PATH, a FIFO"; otherwise it is NULL.
 */
struct object *library_open(struct object *o, const char *name);

/*
 * Is o the program itself, or a library outside the loader's default directories, which then
 * belongs to this program alone?
 */
bool library_is_own(const struct object *o);

/* Is o a part of libc: libc.so.6, the loader, libpthread.so.0 and so on? */
bool library_is_libc(const struct object *o);

#endif
