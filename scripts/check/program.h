/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROGRAM_H
#define CHECK_PROGRAM_H

/*
 * scripts/check/program.h - finds the ELF file that will run for the name that the user typed, and
 * whether the library can be preloaded into it. The launcher calls this at each start, so it must
 * be fast: of the program's libraries, only libc is read.
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
	char *path;			/* the file that the name means; NULL: not found */
	char *scripts[SCRIPTS_MAX];	/* if path is a script: path, then interpreters that are scripts */
	unsigned script_count;
	struct object *object;		/* the ELF file that will run, if one was read */

	enum code code;			/* why the program is refused, or CODE_OK */
	const char *kind;		/* in a few words: "dynamic", "static", ... */
	char *message;			/* one line, if the program is refused */

	/* Why nothing is preloaded into the program, although it is not refused; or NULL. */
	char *native;
	/*
	 * Why the library stays dormant in the program, or NULL.  The library works in the programs
	 * that this program starts.
	 */
	char *dormant;
};

/*
 * Find name in PATH as a shell does, follow #!, and judge the ELF file at the end. library is
 * the object to be preloaded, and the program must be for its machine; if library is NULL, for the
 * machine of this tool.
 */
void program_find(const char *name, const struct object *library, struct program *ret);
void program_free(struct program *p);

/*
 * Find a name without a slash in PATH; NULL if it is not there. *ret_refused is a file of that name that may
 * not be executed, or NULL. Both are to be freed.
 */
char *program_in_path(const char *name, char **ret_refused);

#endif
