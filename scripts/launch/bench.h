/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_BENCH_H
#define LAUNCH_BENCH_H

/*
 * scripts/launch/bench.h - "fiberize bench": its options, and what it starts
 * (scripts/bench/bench.sh).
 */

#include <stdbool.h>

#include "settings.h"

enum bench_option_id {
#define FZ_OPTION(name, argument, type, default_, min, max, help) BENCH_##name,
#include "bench.def"
	BENCH_COUNT
};

/* What --help calls the value of each, and what each is. */
extern const char *const bench_arguments[BENCH_COUNT];
extern const struct fz_option bench_options[BENCH_COUNT];

/*
 * Read the options in words, the settings' among them, which end at the program, and become
 * the script.
 */
_Noreturn void bench(struct settings *s, bool force, bool no_profiles, char **words);

#endif
