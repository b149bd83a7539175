/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SAY_H
#define LAUNCH_SAY_H

/*
 * scripts/launch/say.h - messages and exit codes of the launcher.  scripts/check/program.h has
 * the codes for programs that are refused; fiberize(1) lists all of them.
 */

enum {
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_BENCH = 114,
};

/* One line "fiberize: ..." on standard error, whatever the words in it hold. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Say it and end the process with that code. */
_Noreturn void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the process with code, or with another if standard output could not be written. */
_Noreturn void end_of_output(int code);

#endif
