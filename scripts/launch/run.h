/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_RUN_H
#define LAUNCH_RUN_H

/*
 * scripts/launch/run.h - from a program's name to its exec: finds the program, asks whether the
 * library can help it, sets its environment, and starts it.
 */

#include <stdbool.h>

#include "scripts/check/program.h"
#include "settings.h"

/*
 * Find the program. If the library cannot help it, end the process with a message and the exit
 * code for the reason. With force, only print the message, if the program can be started at
 * all.
 */
void run_find(const char *name, const struct object *library, bool force, struct program *ret);

/* LD_PRELOAD without this library and other copies of it; to be freed. */
char *run_preloaded_by_others(const char *library);

/* Print what run_exec() would do, as one shell command, on standard output. */
void run_show(const struct settings *s, const struct program *p, const char *library, char **words);

/* Become the program; words are its name and arguments. */
_Noreturn void run_exec(const struct settings *s, const struct program *p, const char *library,
			char **words);

#endif
