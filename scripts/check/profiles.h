/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROFILES_H
#define CHECK_PROFILES_H

/*
 * scripts/check/profiles.h - which profiles are for the program, and what they set.
 * The launcher reads them, by what it would do itself, and hands over what it found as
 * arguments, in the order of reading:
 *
 *	--profile FILE PATTERN		a section that is for the program
 *	--setting OPTION VALUE USED	a line of it; USED is 0 if a flag, a variable or an
 *					earlier line has set that option, else 1
 *
 * All strings are the arguments themselves.
 */

#include <stdbool.h>
#include <stddef.h>

struct setting {
	const char *option, *value;
	bool used;
};

struct profile {
	const char *file, *pattern;
	struct setting *settings;
	size_t count;
};

struct profiles {
	struct profile *all;
	size_t count;
};

void profiles_add(struct profiles *p, const char *file, const char *pattern);
/* Of the last one that was added; words are OPTION, VALUE and USED. */
void profiles_set(struct profiles *p, char **words);
void profiles_free(struct profiles *p);

#endif
