/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_LOWLEVELLOCK_H
#define FZ_PRELOAD_LIBC_LOWLEVELLOCK_H

/*
 * preload/libc/lowlevellock.h - waiting for libc's own locks: FILEs, malloc's arenas,
 * the resolver, whatever libc guards with its low-level locks (nptl/lowlevellock.h).
 *
 * Their uncontended paths are compiled into libc's functions; waiting and waking
 * are functions, which are redirected to these.  The word is 0 free, 1 held, 2 held
 * and maybe waited for.  Fibers wait in the parking lot, and so do native threads;
 * whoever cannot waits in the kernel as before, and a wake-up looks in both places.
 */

struct fz_lll {
	void (*wait_private)(int *word);
	void (*wake_private)(int *word);
};

/* libc's functions, once redirected. */
extern struct fz_lll fz_lll_real;

void fz_lll_wait_private(int *word);
void fz_lll_wake_private(int *word);

#endif
