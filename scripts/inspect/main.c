/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/main.c - look at a process that runs under fiberize.
 *
 *	inspect ps [OPTIONS] {PID|--core FILE}
 *	inspect bt [--each] {PID|--core FILE} [TID...]
 *	inspect stat [--json] [--prometheus] {PID|FILE} [INTERVAL]
 *	inspect top [--batch] [--count N] [--rows N] [--sort KEY] PID [INTERVAL]
 *	inspect trace [--summary] [--json FILE] [--seconds N] PID | -- PROGRAM [ARGS]
 *
 * The launcher becomes this program for "fiberize ps" and so on.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	static const struct {
		const char *name;
		int (*run)(char **words);
	} commands[] = { { "ps", command_ps }, { "bt", command_bt }, { "stat", command_stat },
			 { "top", command_top }, { "trace", command_trace } };
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, name) == 0) {
			int code = commands[i].run(argv + 2);

			if (fflush(stdout) != 0 || ferror(stdout))
				die(EXIT_OTHER, "standard output: cannot be written");
			return code;
		}
	die(EXIT_USAGE, "%s: no such command; ps, bt, stat, top and trace look at a process", name);
}
