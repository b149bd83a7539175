/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SETTINGS_H
#define LAUNCH_SETTINGS_H

/*
 * scripts/launch/settings.h - which options are set: by flags, by the environment and by
 * profiles. Each source sets only options that are not set yet, so the first one wins. An
 * invalid option or value ends the process with EXIT_USAGE and a message that names it.
 */

#include "runtime/base/options.h"
#include "scripts/check/profiles.h"

struct settings {
	const char *value[FZ_OPTION_COUNT];	/* as it was written; NULL: not set */
	struct profiles profiles;		/* owns the texts that come from profiles */
	/* The flags of the launcher alone: bool dry_run ... */
#define FZ_LAUNCHER_FLAG(name, help) bool name;
#include "runtime/base/options.def"
};

/*
 * Take one flag of options.def: words[0], and words[1] if that is its value. Returns how many
 * words it takes, 0 if words[0] is no such flag.
 */
int settings_from_flag(struct settings *s, char **words);

/* End with EXIT_USAGE if a flag is set that means nothing to the command. */
void settings_refuse_dry_run(const struct settings *s, const char *command);
void settings_refuse_force(const struct settings *s, const char *command);

/* The value of option o, whose flag words begins with; sets *ret_words to the number of words. */
const char *flag_value(const struct fz_option *o, char **words, int *ret_words);

void settings_from_environment(struct settings *s);

/* Take the options from all profiles that name the program, which is the first word. */
void settings_from_profiles(struct settings *s, char **words);

/* Export all set options into the environment, for the library and for child processes. */
void settings_export(const struct settings *s);

#endif
