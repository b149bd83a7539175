/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_RUN_H
#define LAUNCH_RUN_H

/*
 * scripts/launch/run.h - from a program's name to its exec: is it one that the library helps,
 * what is set for it, and how it is started.
 */

#include <stdbool.h>

#include "scripts/check/program.h"
#include "settings.h"

/*
 * Find the program and refuse what the library cannot help: ends the process with the
 * code for it.  With force all is let through that could be started, with a message.
 */
void run_find(const char *name, const struct object *library, bool force, struct program *ret);

/* LD_PRELOAD's words but for the library and other copies of it; to be freed. */
char *run_preloaded_by_others(const char *library);

/* The plan as one command for a shell, on standard output. */
void run_show(const struct settings *s, const struct program *p, const char *library, char **words);

/* Become the program, words being its name and arguments. */
_Noreturn void run_exec(const struct settings *s, const struct program *p, const char *library,
			char **words);

#endif
