/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_REDIRECT_H
#define FZ_PRELOAD_LIBC_REDIRECT_H

/*
 * preload/libc/redirect.h - libc's own entry points lead to us.
 *
 * Symbol interposition does not see calls inside libc: fgets on a socket calls
 * libc's read, and blocks.  That read is the exported one; a jump over its first
 * instructions leads it to our body.  What these instructions did is moved to a
 * trampoline, through which fz_real calls libc's function as before.
 *
 * A function is left alone unless its first instructions, its size and its place
 * are what we know how to handle (arch/arch.h).  Without redirection everything
 * works all the same; calls inside libc then block their carrier, and the monitor
 * sees it.
 */

#include <stdbool.h>

/*
 * Before the process has its second thread.  Idempotent, also in the child of a
 * fork, which inherits it.
 */
void fz_redirect_start(void);

/*
 * Is this not the process whose runtime it is?  The child of libc's posix_spawn runs
 * in our memory, with the thread pointer of a fiber; that of fork does, in a copy, until
 * its atfork handlers have run, and before that libc unlocks.  Neither may touch the
 * runtime.  A system call: for what is rare.
 */
bool fz_redirect_in_child(void);

/* Threads stay native: as it was.  The process still has one thread. */
void fz_redirect_undo(void);

/* One line for the statistics. */
void fz_redirect_say(void);

#endif
