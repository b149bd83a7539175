/* SPDX-License-Identifier: MIT */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
