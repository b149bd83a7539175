/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SAY_H
#define LAUNCH_SAY_H

/*
 * scripts/launch/say.h - messages and exit codes of the launcher. scripts/check/program.h has
 * the exit codes for refused programs; fiberize(1) lists all of them.
 */

enum {
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_BENCH = 114,
};

/* Print one line "fiberize: ..." on standard error; control characters are replaced. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a line as say() does, and end the process with code. */
_Noreturn void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the process with code, or with EXIT_OTHER if standard output could not be written. */
_Noreturn void end_of_output(int code);

#endif
