/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_WATCHED_H
#define FZ_PRELOAD_THREAD_WATCHED_H

/*
 * preload/thread/watched.h - tools that take a thread's stack for its kernel thread's for
 * ever.  The launcher leaves such programs alone where it sees them; where the library
 * is loaded all the same, it stays dormant.
 *
 * Each returns whether there is one, and then why.
 */

#include <stdbool.h>

/* In the program's own process: as it is loaded. */
bool fz_watched_from_inside(char *const *envp, const char **ret_why);

/* By ptrace: as the first thread is made. */
bool fz_watched_from_outside(const char **ret_why);

#endif
