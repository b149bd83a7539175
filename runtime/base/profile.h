/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_PROFILE_H
#define FZ_RUNTIME_BASE_PROFILE_H

/*
 * runtime/base/profile.h - the one reader of profiles (fiberize(1), FILES), line by line.
 *
 * The launcher (scripts/check/profiles.c) reports the first mistake of a file; the stub (preload/stub/rules.c), in
 * processes of any libc, goes on behind each mistake. Nothing here allocates, or calls more of libc than string functions
 * that preload/stub/text.c has as well.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/options.h"

/* The most bytes that a file may have.  A longer file is not used. */
enum { FZ_PROFILE_MAX = 65535 };

/* The program that profiles are read for. */
struct fz_profile_program {
	const char *name;		/* by which the program was called; patterns are compared with its last part */
	const char *path, *file;	/* path: as found; file: that path without links; NULL: not found */
	const char *(*find_file)(void);	/* called for `file` when a pattern needs it; NULL: use `file` */
	const char *arguments;		/* separated by blanks */
};

/* What fz_profile_next() has found in a line. */
enum fz_profile_found {
	FZ_PROFILE_NOTHING,		/* a comment or a blank line; fz_profile_next() skips it */
	FZ_PROFILE_END,			/* there is no further line */
	FZ_PROFILE_SECTION,		/* [value] */
	FZ_PROFILE_ARGUMENTS,		/* arguments = value */
	FZ_PROFILE_EVERYWHERE,		/* everywhere = value, which is 0 or 1 */
	FZ_PROFILE_OPTION,		/* name = value; `option` allows the value */
	/* Mistakes, from here on */
	FZ_PROFILE_ZERO_BYTE,
	FZ_PROFILE_NEITHER,		/* neither [PROGRAM] nor OPTION = VALUE */
	FZ_PROFILE_NO_PROGRAM,		/* [] */
	FZ_PROFILE_NO_SECTION,		/* a setting before the first section */
	FZ_PROFILE_LATE,		/* arguments, not in the first line of the section */
	FZ_PROFILE_NOT_0_OR_1,		/* another value of everywhere */
	FZ_PROFILE_FOR_ALL,		/* everywhere = 1 in a section of wildcards alone */
	FZ_PROFILE_NO_OPTION,		/* there is no option of this name */
	FZ_PROFILE_BAD_VALUE,		/* option does not allow value */
};

struct fz_profile {
	size_t line;			/* the number of the last line that was read */
	bool applies;			/* that line is in a section for the program */
	/* What the last line has: see enum fz_profile_found.  The strings are in the text. */
	const char *name, *value;
	const struct fz_option *option;

	/* Used by fz_profile_next() alone. */
	const struct fz_profile_program *program;
	char *rest, *end;		/* what has not been read */
	bool in_section, has_name, has_settings;	/* has_name: not of wildcards alone */
};

/*
 * Begin to read the text, which has `length` bytes, and room for a zero behind them.  The reader overwrites the text, and
 * the strings in struct fz_profile point into it.
 */
struct fz_profile fz_profile_begin(char *text, size_t length, const struct fz_profile_program *program);

/* Read the next line that is neither blank nor a comment. */
enum fz_profile_found fz_profile_next(struct fz_profile *p);

#endif
