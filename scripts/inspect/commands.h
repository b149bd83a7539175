/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_COMMANDS_H
#define INSPECT_COMMANDS_H

/*
 * scripts/inspect/commands.h - the commands of commands.def, and their options.
 */

/* command_NAME() takes the words after NAME and returns the exit code. */
#define FZ_COMMAND(name, operands, text) int command_##name(char **words);
#define FZ_OPTION(command, name, argument, help)
#include "commands.def"

enum command_option {
#define FZ_COMMAND(name, operands, text)
#define FZ_OPTION(command, name, argument, help) OPTION_##command##_##name,
#include "commands.def"
	OPTION_COUNT,
	OPTION_NONE = -1,
};

/* Run the command words[0].  Returns its exit code. */
int command_run(char **words);

/*
 * Take one option of command, and its value, from *words.  *ret_value is NULL if the option has no
 * value.  Returns OPTION_NONE at the first word that is no option, and after "--", which stays in *words for
 * trace.  A wrong option, an option after other words, --help and --version end the process.
 */
enum command_option option_next(const char *command, char ***words, char **ret_value);

/* Print "fiberize: COMMAND: ..." and the usage of the command, and end the process. */
_Noreturn void wrong_usage(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
