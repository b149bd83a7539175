/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_BENCH_H
#define LAUNCH_BENCH_H

/*
 * scripts/launch/bench.h - "fiberize bench": reads its options and starts
 * scripts/bench/bench.sh.
 */

#include <stdbool.h>

#include "settings.h"

enum bench_option_id {
#define FZ_OPTION(name, argument, type, default_, min, max, help) BENCH_##name,
#include "bench.def"
	BENCH_COUNT
};

/* For each option: what --help calls its value, and its description. */
extern const char *const bench_arguments[BENCH_COUNT];
extern const struct fz_option bench_options[BENCH_COUNT];

/*
 * Read the options in words, up to the program; the launcher's own options may be among them.
 * Then become the script. command: the whole command line.
 */
_Noreturn void bench(struct settings *s, bool force, bool no_profiles, char **words, char **command);

#endif
