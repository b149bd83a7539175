/* SPDX-License-Identifier: MIT */
#ifndef CHECK_STARTS_H
#define CHECK_STARTS_H

/* scripts/check/starts.h - which programs a wrapper becomes by exec, as far as that can be seen. */

#include <stdbool.h>

#include "program.h"

/*
 * Call visit for each program that p, a shell script, starts by a constant name after "exec" or by
 * a constant absolute path; or, if p is no script, for each path to a program among its strings.
 * Returns whether it becomes one whose name only the run shows.
 */
bool starts_find(const struct program *p, void (*visit)(const char *name, void *arg), void *arg);

/* Is path a shell, by its name? */
bool starts_is_shell(const char *path);

#endif
