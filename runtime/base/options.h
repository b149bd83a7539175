/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_OPTIONS_H
#define FZ_RUNTIME_BASE_OPTIONS_H

/*
 * runtime/base/options.h - options.def as a table, and the one parser of values.
 *
 * The library reads its environment by it (preload/config.c), the launcher flags, variables
 * and profiles (scripts/launch/).  Nothing here allocates, locks or calls more of libc than
 * string functions: any thread, any time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fz_option_id {
#define FZ_OPTION(name, variable, type, default_, min, max, help) FZ_OPTION_ID_##name,
#include "runtime/base/options.def"
	FZ_OPTION_COUNT
};

/* The longest text of a list. */
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
};

/* A line of options.def, whose head says what each field means. */
struct fz_option {
	const char *name, *variable;
	enum fz_option_type type;
	uint64_t initial, min, max;
	const char *words;		/* of choice and set, else NULL */
	const char *help;
};

/* By enum fz_option_id. */
extern const struct fz_option fz_options[FZ_OPTION_COUNT];

/* The option of that variable or flag (without its --), of length bytes; or NULL. */
const struct fz_option *fz_option_of_variable(const char *variable, size_t length);
const struct fz_option *fz_option_of_flag(const char *flag, size_t length);

/*
 * The value that text is for the option: a number, places of words, or for path and list
 * the address of text itself.  False if the option cannot have it.
 */
bool fz_option_parse(const struct fz_option *o, const char *text, uint64_t *ret_value);

/* For people, cut at size, which includes the zero behind it. */
enum { FZ_OPTION_TEXT = 512 };		/* enough for any of them */
void fz_option_allowed(const struct fz_option *o, char *ret_text, size_t size);
void fz_option_default(const struct fz_option *o, char *ret_text, size_t size);
const char *fz_option_argument(const struct fz_option *o);	/* "N"; "" for a bool */

#endif
