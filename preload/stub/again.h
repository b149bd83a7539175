/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_AGAIN_H
#define FZ_PRELOAD_STUB_AGAIN_H

/*
 * preload/stub/again.h - the second exec: the process executes its own program once more, with libfiberize.so first
 * in LD_PRELOAD. One variable, FIBERIZE_PRELOADED=PID/NAME/LD_PRELOAD=BEFORE, tells the second run the id of the
 * process for which it is meant, the name that the process had in the kernel, and the old LD_PRELOAD.
 */

#include <stdbool.h>

#include "preload/stub/rules.h"

/*
 * Is this the second run? If so, this function gives LD_PRELOAD its old value, for the programs that this
 * one starts, empties FIBERIZE_PRELOADED, and gives the process its old name.
 */
bool fz_again_arrived(char **envp);

/* Execute the program again. Returns only if that fails, with the reason. */
const char *fz_again(const struct fz_rules *r, const char *library, char **argv, char **envp);

#endif
