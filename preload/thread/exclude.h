/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_EXCLUDE_H
#define FZ_PRELOAD_THREAD_EXCLUDE_H

/*
 * preload/thread/exclude.h - threads that stay kernel threads, or become ones, because
 * the user said so or because of the library that makes them.
 *
 * FIBERIZE_NATIVE_THREADS is a list of patterns, separated by commas, with * and ?:
 *
 *	NAME	of a thread, as pthread_setname_np or PR_SET_NAME give it
 *	@FILE	the last part of the name of the file, program or library, in which
 *		pthread_create is called
 *
 * A thread that begins with such a name, or gives it to itself, is wired: a kernel
 * thread from then on.  One that is made by such a file is native from the start, and
 * the thread that makes it is wired: it will wait for it in the file's own way.
 *
 * Files that synchronise by spinning and inline system calls, where no symbol is there
 * to take over, are listed without being asked for: OpenMP, oneTBB, BLAS libraries, and
 * all that Go's linker has made.
 */

#include <stdbool.h>

/* From the constructor, with the list or NULL. */
void fz_exclude_init(const char *list);

/* Any thread. */
bool fz_excluded_name(const char *name);

/* caller: the return address of pthread_create.  Takes the loader's
 * lock, for a moment, the first time. */
bool fz_excluded_caller(const void *caller);

#endif
