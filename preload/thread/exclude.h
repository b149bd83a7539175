/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_EXCLUDE_H
#define FZ_PRELOAD_THREAD_EXCLUDE_H

/*
 * preload/thread/exclude.h - threads that are kernel threads, or become ones, because of the
 * user's option or of the library that makes them.
 *
 * FIBERIZE_NATIVE_THREADS is a list of patterns, separated by commas, with * and ?:
 *
 *	NAME	of a thread, as pthread_setname_np or PR_SET_NAME give it
 *	@FILE	the last part of the name of the file, program or library, in which
 *		pthread_create is called
 *
 * A thread that begins with such a name, or takes it later, is wired: a kernel thread from then
 * on. A thread made by such a file is native from the start, and its creator is wired, because the
 * creator will wait for it in the file's own way.
 *
 * Files that synchronise by spinning and inline system calls, which leave no symbol to interpose,
 * are on a built-in list: OpenMP, oneTBB, BLAS libraries, and everything made by Go's linker.
 */

#include <stdbool.h>

struct fz_fiber;

/* Called by the library's constructor. list: the value of FIBERIZE_NATIVE_THREADS, or NULL. */
void fz_exclude_init(const char *list);

/* The calling fiber has got its name: wire the fiber if the name is excluded. */
void fz_exclude_by_name(struct fz_fiber *self);

/*
 * Is pthread_create called from an excluded file? caller: the address to which pthread_create returns.
 * May take the loader's lock for a moment, at the first call with this address.
 */
bool fz_excluded_caller(const void *caller);

#endif
