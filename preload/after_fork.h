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
 * or of a clone that copies the memory.  shares_files: the child's table of descriptors is the
 * parent's.
 */
void fz_after_fork_in_child(bool shares_files);

/*
 * Call these two around the making of a process. In between the limit on descriptors is not raised
 * (fz_sched_hold_limit), and private copies are kept such that the child can close all of them
 * (fz_kept_fd_copying_begins). A thread with an unshared table of descriptors passes that table on; no
 * private copy is in it, so only the limit matters.  In the parent; any thread, outside the runtime.
 */
void fz_files_copying_begins(void);
void fz_files_copying_ends(void);

#endif
