/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROGRAM_H
#define CHECK_PROGRAM_H

/*
 * scripts/check/program.h - from the name that the user typed to the ELF file that will run,
 * and whether the library can be preloaded into that file. The launcher waits for this at each
 * start, so of all libraries only libc's versions are read.
 */

#include "scripts/elf/object.h"

/* Exit codes; scripts/package/fiberize.1 lists them. */
enum code {
	CODE_OK = 0,
	CODE_LIBRARY = 115,
	CODE_STATIC = 116,
	CODE_32BIT = 117,
	CODE_MACHINE = 118,
	CODE_LIBC = 119,
	CODE_SECURE = 120,
	CODE_NOEXEC = 126,
	CODE_NOTFOUND = 127,
};

enum { SCRIPTS_MAX = 5 };		/* the kernel follows no more */

struct program {
	char *path;			/* the file that exec would start; NULL: not found */
	char *scripts[SCRIPTS_MAX];	/* scripts that were followed; the first is path */
	unsigned script_count;
	struct object *object;		/* the ELF file that will run, if one was read */

	enum code code;			/* why the program is refused, or CODE_OK */
	const char *kind;		/* in a few words: "dynamic", "static", ... */
	char *message;			/* one line, if the program is refused */

	/* The program is not refused, but nothing is preloaded into it: why, or NULL. */
	char *native;
	/*
	 * The library stays dormant in the program and serves the programs that it starts: why,
	 * or NULL.
	 */
	char *dormant;
};

/*
 * Find name in PATH as a shell does, follow #!, and judge the ELF file at the end. library is
 * the object to be preloaded; NULL: the machine is compared with this tool's own.
 */
void program_find(const char *name, const struct object *library, struct program *ret);
void program_free(struct program *p);

/*
 * Find a name without a slash in PATH; NULL if it is not there. *ret_refused is a file of that name that may
 * not be executed, or NULL. Both are to be freed.
 */
char *program_in_path(const char *name, char **ret_refused);

#endif
