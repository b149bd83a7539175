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
 * Read the options in words, up to the program's name; options of the launcher may be among them.
 * Then execute scripts/bench/bench.sh in place of this process. command is the whole command line,
 * for the report.
 */
_Noreturn void bench(struct settings *s, char **words, char **command);

#endif
