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

/* A section of a profile that applies to the program. */
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
 * Read a profile, and take the sections that apply to this program. values has one entry for each of
 * fz_options; if the profile sets an option whose entry is NULL, the entry becomes the text of the value.
 * Sections for other programs are only checked. Returns NULL, or an error message, which the caller frees.
 * *ret_ignored is true if the file is too long, or if a user other than root and this one could write it:
 * then the file is ignored, and the message says so.
 */
char *profiles_read(struct profiles *p, const char **values, const char *file,
		    const struct fz_profile_program *program, bool *ret_ignored);

void profiles_free(struct profiles *p);

#endif
