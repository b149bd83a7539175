/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/main.c - look at a process that runs under fiberize.
 *
 *	inspect COMMAND [OPTIONS] ...
 *
 * The launcher becomes this program for the commands of commands.def.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "say.h"

static void (*before_death)(void);

void die_after(void (*first)(void))
{
	before_death = first;
}

_Noreturn void die(int code, const char *format, ...)
{
	va_list args;

	if (before_death)
		before_death();
	fflush(stdout);
	fputs("fiberize: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

int main(int argc, char **argv)
{
	int code = command_run(argv + (argc > 0));

	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_OTHER, "standard output: cannot be written");
	return code;
}
