/* SPDX-License-Identifier: MIT */
#ifndef CHECK_STARTS_H
#define CHECK_STARTS_H

/* scripts/check/starts.h - finds the programs that a wrapper starts, as far as its file shows them. */

#include <stdbool.h>

#include "program.h"

/*
 * Call visit for each program that p starts, as far as its file shows. In a shell script these are
 * constant names after "exec", and commands that are constant absolute paths; in an ELF program,
 * strings that are paths of programs. Returns true if a script also execs a program whose name only
 * the run shows.
 */
bool starts_find(const struct program *p, void (*visit)(const char *name, void *arg), void *arg);

/* Is path a shell, by its name? */
bool starts_is_shell(const char *path);

#endif
