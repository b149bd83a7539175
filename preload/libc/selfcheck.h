/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_SELFCHECK_H
#define FZ_PRELOAD_LIBC_SELFCHECK_H

/*
 * preload/libc/selfcheck.h - is this libc the one that we take it for?
 *
 * What we rely on beyond its documentation, by experiment on the calling thread: the
 * place of the tid and of the word for cancellation in the TCB, the bits of that
 * word, the words of a mutex, the place of the flags of a condition variable, the
 * function that runs thread_local destructors (preload/thread/tls.c).  Sizes and offsets that programs have compiled into them are
 * libc's ABI, and asserted where they are used.
 */

#include <stdbool.h>

/*
 * From the constructor, once fz_real is bound; fills fz_layout.  False: unknown, so
 * no fibers; *ret_why says in a few words what it is.
 */
bool fz_libc_check(const char **ret_why);

#endif
