/* SPDX-License-Identifier: MIT */
#ifndef CHECK_LIBRARIES_H
#define CHECK_LIBRARIES_H

/*
 * scripts/check/libraries.h - finds the files that the dynamic loader would load for a program,
 * in the loader's order (ld.so(8)): DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the
 * default directories. Then the files that the program may load by dlopen, as far as its strings
 * name them.
 */

#include "scripts/elf/object.h"

struct libraries {
	struct object **objects;	/* the program, then its libraries breadth first */
	size_t count;
	size_t needed_count;		/* behind these, what may be loaded at run time */
	char **missing;			/* names that were not found */
	size_t missing_count;
};

/* Find all libraries of program, which stays the caller's; libraries_free() frees the others. */
void libraries_find(struct object *program, struct libraries *ret);
void libraries_free(struct libraries *l);

/* Find, open and read the library that o needs by this name; NULL if there is none. */
struct object *library_open(struct object *o, const char *name);

/*
 * Does the program bring o with it: is o the program, or does it lie outside the directories where
 * the libraries of all programs are?
 */
bool library_is_own(const struct object *o);

/* Is o a part of libc: libc.so.6, the loader, libpthread.so.0 and so on? */
bool library_is_libc(const struct object *o);

#endif
