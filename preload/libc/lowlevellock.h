/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_LOWLEVELLOCK_H
#define FZ_PRELOAD_LIBC_LOWLEVELLOCK_H

/*
 * preload/libc/lowlevellock.h - waiting for libc's own locks: FILEs, malloc's arenas, the
 * resolver, and all else that libc guards with its low-level locks (nptl/lowlevellock.h).
 *
 * The uncontended paths are compiled into libc's functions; waiting and waking are functions of
 * libc, which are redirected to the functions below. The lock's word is 0 free, 1 held, 2 held
 * and maybe waited for. Fibers and native threads wait in the parking lot. A thread that may
 * not park waits in the kernel, as in libc, so a wake-up looks in both places.
 */

struct fz_lll {
	void (*wait_private)(int *word);
	void (*wake_private)(int *word);
};

/* libc's own functions, valid once they are redirected. */
extern struct fz_lll fz_lll_real;

void fz_lll_wait_private(int *word);
void fz_lll_wake_private(int *word);

#endif
