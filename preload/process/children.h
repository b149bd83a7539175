/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_CHILDREN_H
#define FZ_PRELOAD_PROCESS_CHILDREN_H

/*
 * preload/process/children.h - FIBERIZE_CHILDREN=0: programs that this one executes run
 * without us.
 */

/*
 * Take this library, and nothing else, out of LD_PRELOAD in the program's own
 * environment: whatever it executes, by whatever call, inherits that, and so does an
 * environment that it makes from its own.  At start-up.
 */
void fz_children_without_us(char **envp);

#endif
