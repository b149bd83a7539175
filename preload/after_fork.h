/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_AFTER_FORK_H
#define FZ_PRELOAD_AFTER_FORK_H

/*
 * preload/after_fork.h - what the library does when the program forks.
 */

#include <stdbool.h>

/* Register the handlers of pthread_atfork(); once, when the library is loaded. */
void fz_fork_handlers_register(void);

/*
 * Reset the runtime to dormant in a new process, before anything else uses it: the child of a fork,
 * or of a clone that copies the memory.  shares_files: its table of descriptors is the parent's.
 */
void fz_after_fork_in_child(bool shares_files);

#endif
