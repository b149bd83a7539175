/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_COMMANDS_H
#define INSPECT_COMMANDS_H

/*
 * scripts/inspect/commands.h - the commands that look at a process.  Each takes the words after its
 * name, and returns the exit code.
 */

int command_ps(char **words);
int command_bt(char **words);
int command_trace(char **words);

#endif
