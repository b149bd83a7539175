/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_SELFCHECK_H
#define FZ_PRELOAD_LIBC_SELFCHECK_H

/*
 * preload/libc/selfcheck.h - is this libc one that the library knows?
 *
 * Tests, on the calling thread, what the library needs beyond libc's documentation: the place
 * of the tid and of the cancellation word in the TCB, the bits of that word, the words of a
 * mutex, the place of the flags of a condition variable, the function that runs thread_local
 * destructors (preload/thread/tls.c). Sizes and offsets that programs have compiled into them
 * are libc's ABI, and are asserted where they are used.
 */

#include <stdbool.h>

/*
 * Run the tests and fill fz_layout. From the constructor, once fz_real is bound. Returns false
 * if this libc is unknown, so that there can be no fibers; *ret_why then says in a few words
 * what differs.
 */
bool fz_libc_check(const char **ret_why);

#endif
