/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_OPTIONS_H
#define FZ_RUNTIME_BASE_OPTIONS_H

/*
 * runtime/base/options.h - options.def as a table, and the one parser of values.
 *
 * The library parses its environment with it (preload/config.c), the launcher flags and variables (scripts/launch/), and the
 * reader of profiles their lines (profile.h).  Nothing here allocates, locks or calls more of libc than string
 * functions that preload/stub/text.c has as well: any thread, any time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fz_option_id {
#define FZ_OPTION(name, variable, type, default_, min, max, help) FZ_OPTION_ID_##name,
#include "runtime/base/options.def"
	FZ_OPTION_COUNT
};

/* FZ_OPTION_MAX_name: the largest value of an option, or the longest text of a list. */
enum {
#define FZ_OPTION(name, variable, type, default_, min, max, help) FZ_OPTION_MAX_##name = max,
#include "runtime/base/options.def"
};

enum fz_option_type {
	FZ_OPTION_int,
	FZ_OPTION_bool,
	FZ_OPTION_size,
	FZ_OPTION_path,
	FZ_OPTION_list,
	FZ_OPTION_choice,
	FZ_OPTION_set,
	FZ_OPTION_file,
};

/* One line of options.def; the head of options.def says what each field means. */
struct fz_option {
	const char *name, *variable;
	enum fz_option_type type;
	uint64_t initial, min, max;
	const char *words;		/* NULL unless type is choice or set */
	const char *help;
};

/* Indexed by enum fz_option_id. */
extern const struct fz_option fz_options[FZ_OPTION_COUNT];

/* Does the option's flag need no value, and is there an opposite flag, --no-...? */
static inline bool fz_option_is_switch(const struct fz_option *o)
{
	return o->type == FZ_OPTION_bool || o->type == FZ_OPTION_file;
}

/* Is name, which has _ for -, the flag (without --) of length bytes? */
bool fz_option_is_flag(const char *name, const char *flag, size_t length);

/* Find an option by its variable or flag (without --), whose name has length bytes; or NULL. */
const struct fz_option *fz_option_of_variable(const char *variable, size_t length);
const struct fz_option *fz_option_of_flag(const char *flag, size_t length);

/*
 * Parse text as a value of the option.  *ret_value is a number; the places of words (choice, set); or the
 * address of text itself (path, list, the name of a file).  Returns false if the option does not allow
 * the value.
 */
bool fz_option_parse(const struct fz_option *o, const char *text, uint64_t *ret_value);

/*
 * Text for people: the values that an option allows, its default, the name of its argument in
 * --help.  The text is cut at size bytes, which include the terminating zero.
 */
enum { FZ_OPTION_TEXT = 512 };		/* a size that is enough for any option */
void fz_option_allowed(const struct fz_option *o, char *ret_text, size_t size);
void fz_option_default(const struct fz_option *o, char *ret_text, size_t size);
const char *fz_option_argument(const struct fz_option *o);	/* "N"; "" for a bool */

#endif
