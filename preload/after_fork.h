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

/*
 * fz_sched_hold_limit() and _release_limit(); and fz_kept_fd_copying_begins() and _ends(), unless
 * the thread has a table of its own: it passes that on, which has none of the copies that others
 * make, and what they have left are the program's numbers there.  In the parent; any thread,
 * outside the runtime.
 */
void fz_files_copying_begins(void);
void fz_files_copying_ends(void);

#endif
