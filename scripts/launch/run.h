/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_RUN_H
#define LAUNCH_RUN_H

/*
 * scripts/launch/run.h - runs a program: finds it, checks whether the library can be preloaded into
 * it, sets its environment, and executes it.
 */

#include <stdbool.h>

#include "scripts/check/program.h"
#include "settings.h"

/*
 * Find the program. If the library cannot be preloaded into it, end the process with a message and
 * the exit code for the reason. With force, print the message and return, unless the program cannot
 * be started at all.
 */
void run_find(const char *name, const struct object *library, bool force, struct program *ret);

/* The value of LD_PRELOAD without this library, other copies of it and libfiberize-preload.so; the caller frees it. */
char *run_preloaded_by_others(const char *library);

/* Print what run_exec() would do, as one shell command, on standard output. */
void run_show(const struct settings *s, const struct program *p, const char *library, char **words);

/* Execute the program in place of this process; words are its name and arguments. */
_Noreturn void run_exec(const struct settings *s, const struct program *p, const char *library,
			char **words);

#endif
