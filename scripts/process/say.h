/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_SAY_H
#define INSPECT_SAY_H

/*
 * scripts/process/say.h - messages and exit codes of the commands that look at a process.
 */

enum {
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_TERMINAL = 104,
	EXIT_NO_PROCESS = 105,
	EXIT_FORBIDDEN = 106,
	EXIT_NOT_FIBERIZED = 107,
	EXIT_VERSION = 108,
	EXIT_CORE = 109,
};

/* Print one line "fiberize: ..." on standard error and end the process with code. */
_Noreturn void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Set a function that die() calls before it prints; NULL: none. */
void die_after(void (*first)(void));

#endif
