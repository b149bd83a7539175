/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROFILES_H
#define CHECK_PROFILES_H

/*
 * scripts/check/profiles.h - reads from profiles the options that they set for a program. The launcher
 * chooses the files; runtime/base/profile.h reads their lines.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/profile.h"

struct setting {
	const char *option, *value;
	bool used;			/* false: a flag, a variable or an earlier line sets the option */
};

/* A section that applies to the program. */
struct profile {
	const char *file, *pattern;
	struct setting *settings;
	size_t count;
};

struct profiles {
	struct profile *all;
	size_t count;
	char **texts;			/* own all strings: the files' texts and their names */
	size_t text_count;
};

/*
 * Read a profile for this program. values has one entry for each of fz_options;
 * each option that the profile sets and whose entry is NULL gets the text of its value there.
 * Returns NULL, or an error message, to be freed. Settings for other programs are checked as
 * well. A file that others than root and the user may have written, or that is too long, is ignored,
 * and the message says so.
 */
char *profiles_read(struct profiles *p, const char **values, const char *file,
		    const struct fz_profile_program *program, bool *ret_ignored);

void profiles_free(struct profiles *p);

#endif
