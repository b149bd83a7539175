/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROFILES_H
#define CHECK_PROFILES_H

/*
 * scripts/check/profiles.h - profiles: files with options for programs by their names.
 * fiberize(1), FILES, says what is in them; the launcher, which of them there are.
 */

#include <stdbool.h>
#include <stddef.h>

struct setting {
	const char *option, *value;
	bool used;			/* else a flag, a variable or an earlier line has set it */
};

/* A section that is for the program. */
struct profile {
	const char *file, *pattern;
	struct setting *settings;
	size_t count;
};

struct profiles {
	struct profile *all;
	size_t count;
	char **texts;			/* what all strings are in: read files, and their names */
	size_t text_count;
};

/*
 * Read a profile for the program of that name.  Each option that it sets and that is NULL in
 * values, one for each of fz_options, becomes the text of its value there.  Returns NULL, or
 * what is wrong with the file, to be freed; settings for other programs are judged as well.
 */
char *profiles_read(struct profiles *p, const char **values, const char *file, const char *program);

void profiles_free(struct profiles *p);

#endif
