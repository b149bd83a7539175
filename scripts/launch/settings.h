/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SETTINGS_H
#define LAUNCH_SETTINGS_H

/*
 * scripts/launch/settings.h - which options are set, by flags, by the environment and by
 * profiles.  Each fills in what is not set yet, so that the first one holds.  What cannot be
 * ends the process with EXIT_USAGE and a message that names it.
 */

#include "runtime/base/options.h"
#include "scripts/check/profiles.h"

struct settings {
	const char *value[FZ_OPTION_COUNT];	/* as it was written; NULL: not set */
	struct profiles profiles;		/* own what of the texts is from profiles */
};

/*
 * An option among flags: a word, and the next if it has a value there.  Returns how many
 * words it is, 0 if it is none of the library's.
 */
int settings_from_flag(struct settings *s, char **words);

/* The option's value out of the flag that words begins with; sets *ret_words to how many it is. */
const char *flag_value(const struct fz_option *o, char **words, int *ret_words);

void settings_from_environment(struct settings *s);

/* From all profiles that name the program. */
void settings_from_profiles(struct settings *s, const char *program);

/* Into the environment, for the library and for what is started. */
void settings_export(const struct settings *s);

#endif
