/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/main.c - the program "inspect", which looks at a process that runs under fiberize.
 *
 *	inspect COMMAND [OPTIONS] ...
 *
 * The launcher executes this program in its place for the commands of commands.def.
 */
#include <stdio.h>

#include "commands.h"
#include "scripts/process/say.h"

int main(int argc, char **argv)
{
	int code = command_run(argv + (argc > 0));

	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_OTHER, "standard output: cannot be written");
	return code;
}
