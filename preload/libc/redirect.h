/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_REDIRECT_H
#define FZ_PRELOAD_LIBC_REDIRECT_H

/*
 * preload/libc/redirect.h - leads libc's own entry points to the library's bodies.
 *
 * Symbol interposition does not see calls inside libc: fgets on a socket calls libc's read, and
 * blocks. That read is the exported function; a jump over its first instructions leads it to
 * our body. The overwritten instructions move to a trampoline, through which fz_real still
 * calls libc's function.
 *
 * A function is left alone unless its first instructions, its size and its place are of a kind
 * that we can handle (arch/arch.h). Without redirection a program still works: calls inside
 * libc then block their carrier, and the monitor preempts it.
 */

#include <stdbool.h>

/*
 * Redirect all entries that can be. Before the process has its second thread. Idempotent, also
 * in the child of a fork, which inherits the redirection.
 */
void fz_redirect_start(void);

/*
 * Does the caller run in a child process, with the runtime of its parent? The child of libc's
 * posix_spawn runs in our memory, with the thread pointer of a fiber. The child of fork has a copy of
 * the parent's runtime until fz_fork_notice() or the atfork handler resets it, and libc unlocks its
 * locks before that. Neither child may touch the runtime. Makes a system call: only for rare paths.
 */
bool fz_redirect_in_child(void);

/*
 * Does a call of libc's function from inside libc reach the library's body?  real: the function's pointer in
 * fz_real.
 */
bool fz_redirect_reaches(const void *real);

/* Restore libc's code, because threads stay native. The process still has one thread. */
void fz_redirect_undo(void);

/* Print one line of the statistics, which begins with prefix. */
void fz_redirect_say(const char *prefix);

#endif
