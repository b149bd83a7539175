/* SPDX-License-Identifier: MIT */
#ifndef CHECK_ENVIRONMENT_H
#define CHECK_ENVIRONMENT_H

/*
 * scripts/check/environment.h - the environment that the launcher was started with,
 * past a shell that cannot hold all of it: names that are none of a shell's variables
 * ("a.b", bash's functions) are dropped, some have a meaning (PWD, PPID), and the
 * launcher's own variables may have the name of one of the user's.
 *
 *	check --launch		prints what the shell would get wrong, as assignments of
 *				FIBERIZE_ENV_0 and so on, each "NAME=VALUE" or, for what
 *				was not there at all, "NAME"
 *	check --exec FILE	has them in its environment, puts it right, and becomes FILE
 *	check --try FILE	the same, but never by the shell
 *
 * By variables, because everyone may read the arguments of a process.
 */

#include <stdbool.h>
#include <stdio.h>

/*
 * One line for the shell's eval, empty if it has kept everything.  in is what the
 * launcher was started with, or empty; its shell's environment is ours.
 */
void environment_compare(FILE *in, FILE *out);

/*
 * Become file.  argv as the program shall see it; scripts: what the kernel does not know
 * is the shell's.  Returns an exit code.
 */
int environment_exec(const char *file, char **argv, bool scripts);

#endif
