/* SPDX-License-Identifier: MIT */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripts/check/report.h"

static void say_all(const char *format, va_list args)
{
	char *text = NULL;

	fputs("fiberize: ", stderr);
	if (vasprintf(&text, format, args) >= 0)
		put_line(text, stderr);
	fputc('\n', stderr);
	free(text);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_all(format, args);
	va_end(args);
}

_Noreturn void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_all(format, args);
	va_end(args);
	exit(code);
}

_Noreturn void end_of_output(int code)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_OTHER, "standard output: cannot be written");
	exit(code);
}
