/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_WATCHED_H
#define FZ_PRELOAD_THREAD_WATCHED_H

/*
 * preload/thread/watched.h - is the process under a tool, such as valgrind or a sanitizer, that
 * assumes that a kernel thread keeps its stack? Then the library stays dormant. The launcher does not
 * even load the library under a tool that it recognises.
 *
 * Each function returns true under such a tool; *ret_why is then the reason.
 */

#include <stdbool.h>

/* Tools inside the program's own process. Called as the program is loaded. */
bool fz_watched_from_inside(char *const *envp, const char **ret_why);

/* Tools that use ptrace. Called as the first thread is made. */
bool fz_watched_from_outside(const char **ret_why);

#endif
