/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_CHILDREN_H
#define FZ_PRELOAD_PROCESS_CHILDREN_H

/*
 * preload/process/children.h - FIBERIZE_CHILDREN=0: programs that this one executes run without
 * this library.
 */

/*
 * Remove this library and the stub (preload/stub), and nothing else, from LD_PRELOAD in the program's own
 * environment, at start-up. A program that this one executes by any call inherits that environment; so does an
 * environment that the program makes from its own.
 */
void fz_children_without_us(char **envp);

#endif
