/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_WATCHED_H
#define FZ_PRELOAD_THREAD_WATCHED_H

/*
 * preload/thread/watched.h - tools that take the stack of a thread for its kernel thread's for
 * ever. The launcher runs programs without the library under such a tool, where it sees the tool;
 * where the library is loaded all the same, it stays dormant.
 *
 * Each function returns whether there is such a tool, and then its reason in *ret_why.
 */

#include <stdbool.h>

/* Tools inside the program's own process. Called as the program is loaded. */
bool fz_watched_from_inside(char *const *envp, const char **ret_why);

/* Tools that use ptrace. Called as the first thread is made. */
bool fz_watched_from_outside(const char **ret_why);

#endif
