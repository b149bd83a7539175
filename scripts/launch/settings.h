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
	const char *value[FZ_OPTION_COUNT];	/* as the user wrote it; NULL: not set */
	struct profiles profiles;		/* owns the texts that come from profiles */
	/* The flags of the launcher alone: bool dry_run ... */
#define FZ_LAUNCHER_FLAG(name, help) bool name;
#include "runtime/base/options.def"
};

/*
 * Take words[0] if it is a flag of options.def, and words[1] if that is the flag's value. Returns
 * how many words were taken; 0 if words[0] is no such flag.
 */
int settings_from_flag(struct settings *s, char **words);

/* End with EXIT_USAGE if --dry-run is set, which command does not take, or --force and it does not take that. */
void settings_refuse(const struct settings *s, const char *command, bool takes_force);

/* words[0] is a flag of option o. Returns its value; *ret_words is the number of words taken, 1 or 2. */
const char *flag_value(const struct fz_option *o, char **words, int *ret_words);

void settings_from_environment(struct settings *s);

/* Take the options from all profiles for the program words[0]. */
void settings_from_profiles(struct settings *s, char **words);

/* Export all set options into the environment, for the library and for child processes. */
void settings_export(const struct settings *s);

#endif
