/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "scripts/check/program.h"

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- flags -------------------------------------------------------------- */

const char *flag_value(const struct fz_option *o, char **words, int *ret_words)
{
	const char *equals = starts(words[0], "--") ? strchr(words[0], '=') : NULL;
	char allowed[FZ_OPTION_TEXT];
	const char *value;
	uint64_t number;

	*ret_words = 1;
	fz_option_allowed(o, allowed, sizeof(allowed));
	if (equals) {
		value = equals + 1;
	} else if (!starts(words[0], "--") && words[0][2]) {
		value = words[0] + 2;
	} else if (fz_option_is_switch(o)) {
		value = starts(words[0], "--no-") ? "0" : "1";
	} else {
		if (!words[1])
			die(EXIT_USAGE, "%s needs a value: %s", words[0], allowed);
		value = words[1];
		*ret_words = 2;
	}
	if (!fz_option_parse(o, value, &number))
		die(EXIT_USAGE, "%s%s%s: must be %s", words[0], *ret_words == 2 ? " " : "",
		    *ret_words == 2 ? value : "", allowed);
	return value;
}

/* The option whose short flag the word begins with: -v, -p or -p8; or NULL. */
static const struct fz_option *option_of_short_flag(const char *word)
{
#define FZ_SHORT_FLAG(name, letter)                                                          \
	if (word[0] == '-' && word[1] == letter &&                                           \
	    (!word[2] || !fz_option_is_switch(&fz_options[FZ_OPTION_ID_##name])))            \
		return &fz_options[FZ_OPTION_ID_##name];
#include "runtime/base/options.def"
	return NULL;
}

/* If the word is a flag of the launcher alone, such as --force, set it and return 1; else return 0. */
static int launcher_flag(struct settings *s, const char *word)
{
#define FZ_LAUNCHER_FLAG(name, help)                                                         \
	if (starts(word, "--") && fz_option_is_flag(#name, word + 2, strlen(word + 2))) {    \
		s->name = true;                                                              \
		return 1;                                                                    \
	}
#include "runtime/base/options.def"
	return 0;
}

int settings_from_flag(struct settings *s, char **words)
{
	const struct fz_option *o = NULL;
	const char *word = words[0];
	int count;

	if (starts(word, "--no-")) {
		o = fz_option_of_flag(word + 5, strlen(word + 5));
		if (o && !fz_option_is_switch(o))
			o = NULL;
	} else if (starts(word, "--")) {
		o = fz_option_of_flag(word + 2, strcspn(word + 2, "="));
	} else {
		o = option_of_short_flag(word);
	}
	if (!o)
		return launcher_flag(s, word);
	s->value[o - fz_options] = flag_value(o, words, &count);
	return count;
}

void settings_refuse(const struct settings *s, const char *command, bool takes_force)
{
	if (s->dry_run || (s->force && !takes_force))
		die(EXIT_USAGE, "--%s: cannot be used with %s", s->dry_run ? "dry-run" : "force", command);
}

/* ---- the environment ---------------------------------------------------- */

static _Noreturn void die_of_unknown(const char *name, size_t length)
{
	char known[FZ_OPTION_COUNT * 64] = "";

	for (size_t i = 0; i < FZ_OPTION_COUNT; i++) {
		strcat(known, " ");
		strncat(known, fz_options[i].variable, 62);
	}
	die(EXIT_USAGE, "%.*s: no such option; the options are%s", (int)length, name, known);
}

void settings_from_environment(struct settings *s)
{
	for (char **entry = environ; *entry; entry++) {
		size_t length = strcspn(*entry, "=");
		const struct fz_option *o = fz_option_of_variable(*entry, length);
		char allowed[FZ_OPTION_TEXT];
		uint64_t number;

		/* Skip variables that the launcher and preload/stub set (preload/init.c): they are no options. */
		if (!starts(*entry, "FIBERIZE_") || !(*entry)[length] ||
		    starts(*entry, "FIBERIZE_LAUNCHED=") || starts(*entry, "FIBERIZE_PRELOADED="))
			continue;
		if (!o)
			die_of_unknown(*entry, length);
		if (s->value[o - fz_options])
			continue;
		s->value[o - fz_options] = *entry + length + 1;
		if (fz_option_parse(o, *entry + length + 1, &number))
			continue;
		fz_option_allowed(o, allowed, sizeof(allowed));
		die(EXIT_USAGE, "%s: must be %s", *entry, allowed);
	}
}

void settings_export(const struct settings *s)
{
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (s->value[i] && setenv(fz_options[i].variable, s->value[i], 1) != 0)
			die(EXIT_OTHER, "no memory for the environment");
}

/* ---- profiles ----------------------------------------------------------- */

static int is_profile(const struct dirent *d)
{
	size_t length = strlen(d->d_name);

	return *d->d_name != '.' && length > 5 && strcmp(d->d_name + length - 5, ".conf") == 0;
}

/*
 * Read the profiles in a folder, in the order of their names. A folder that cannot be read counts
 * as empty.
 */
static void read_folder(struct settings *s, const char *folder, const struct fz_profile_program *program)
{
	struct dirent **names;
	int count = scandir(folder, &names, is_profile, alphasort);

	for (int i = 0; i < count; i++) {
		char *path, *why;
		bool ignored;

		if (asprintf(&path, "%s/%s", folder, names[i]->d_name) < 0)
			die(EXIT_OTHER, "no memory");
		why = profiles_read(&s->profiles, s->value, path, program, &ignored);
		if (why && !ignored)
			die(EXIT_USAGE, "%s", why);
		if (why)
			say("%s", why);
		free(why);
		free(path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

static char *join(char **words)
{
	size_t length = 1;
	char *text;

	for (size_t i = 0; words[i]; i++)
		length += strlen(words[i]) + 1;
	text = calloc(1, length);
	if (!text)
		die(EXIT_OTHER, "no memory");
	for (size_t i = 0; words[i]; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, words[i]);
	}
	return text;
}

void settings_from_profiles(struct settings *s, char **words)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	bool by_home = !config || *config != '/';
	bool is_path = strchr(words[0], '/');
	char *refused = NULL, *path = is_path ? strdup(words[0]) : program_in_path(words[0], &refused);
	char *file = path ? realpath(path, NULL) : NULL, *arguments = join(words + 1);
	const struct fz_profile_program program = {
		.name = words[0], .path = path, .file = file, .arguments = arguments,
	};
	char *own;

	if (by_home)
		config = home && *home ? home : "/nonexistent";
	if (asprintf(&own, "%s%s/fiberize", config, by_home ? "/.config" : "") < 0)
		die(EXIT_OTHER, "no memory");
	read_folder(s, own, &program);
	read_folder(s, "/etc/fiberize", &program);
	free(own);
	free(path);
	free(refused);
	free(file);
	free(arguments);
}
