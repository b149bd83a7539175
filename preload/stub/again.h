/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_AGAIN_H
#define FZ_PRELOAD_STUB_AGAIN_H

/*
 * preload/stub/again.h - the second exec: the process executes its own program once more, with libfiberize.so first
 * in LD_PRELOAD. One variable, FIBERIZE_PRELOADED=PID/NAME/LD_PRELOAD=BEFORE, tells the second run whose it is,
 * the name that the kernel gave the process, and what LD_PRELOAD was.
 */

#include <stdbool.h>

#include "preload/stub/rules.h"

/*
 * Is this the second run? Then LD_PRELOAD is again what it was, for the programs that this one starts, the
 * variable is empty, and the process has its name.
 */
bool fz_again_arrived(char **envp);

/* Execute the program anew. Returns why that is impossible. */
const char *fz_again(const struct fz_rules *r, const char *library, char **argv, char **envp);

#endif
