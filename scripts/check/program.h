/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROGRAM_H
#define CHECK_PROGRAM_H

/*
 * scripts/check/program.h - from what the user typed to the ELF file that will
 * run, and whether the library can be preloaded into that.  This is what the
 * launcher waits for, so no library is read but libc's versions.
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

enum { SCRIPTS_MAX = 5 };		/* as many as the kernel follows */

struct program {
	char *path;			/* the file that exec would take; NULL: none */
	char *scripts[SCRIPTS_MAX];	/* that were followed, the first is path */
	unsigned script_count;
	struct object *object;		/* the ELF file at the end, if one was read */

	enum code code;			/* why it cannot be, or CODE_OK */
	const char *kind;		/* in a few words: "dynamic", "static", ... */
	char *message;			/* for a code, one line */

	/* Not refused, but the launcher preloads nothing into it: why, or NULL. */
	char *native;
	/* The library is for the programs that it starts, and dormant in it: why, or NULL. */
	char *dormant;
};

/*
 * Find name in PATH as a shell does, follow #!, and judge what is at the end.
 * library is the object to be preloaded, or NULL: then the machine is compared
 * with this tool's own.
 */
void program_find(const char *name, const struct object *library, struct program *ret);
void program_free(struct program *p);

#endif
