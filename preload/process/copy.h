/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_COPY_H
#define FZ_PRELOAD_PROCESS_COPY_H

/*
 * preload/process/copy.h - a copy of the process that libc's fork() does not make: by clone(),
 * _Fork(), vfork() or a system call.
 *
 * fork() frees locks of libc in the child; such a call does not. While the process is copied, the
 * library makes and ends no kernel thread, because the child would find the locks for that held
 * for ever. Locks that threads of the program hold are the program's affair, as natively.
 *
 *	fz_copy_begin(&copy, flags);
 *	pid = the call
 *	if (pid == 0)
 *		fz_copy_in_child(&copy);
 *	else
 *		fz_copy_end(&copy);
 *
 * All signals that have an effect are blocked in between: a handler must not make other fibers run,
 * or use the parent's runtime in the child.
 */

#include <stdbool.h>
#include <stdint.h>

/* On the stack of the caller; both processes have one. */
struct fz_copy {
	uint64_t mask;		/* the kernel thread's signal mask, to be restored */
	bool gates;		/* the gates are closed: no thread holds a lock of libc for the library */
	bool carriers;		/* no carrier's kernel thread may end (fz_carrier_hold_ends) */
	bool shares_files;	/* the child's descriptors are the parent's */
};

/*
 * flags: as of clone(). Any thread, outside the runtime. fz_copy_begin() may wait: for its turn
 * (fz_spawner_turn_begin), for other threads to leave the gates (fork_gate.h), and for kernel threads that
 * are ending.
 */
void fz_copy_begin(struct fz_copy *copy, unsigned long flags);
void fz_copy_end(const struct fz_copy *copy);

/* The child is dormant from here on. */
void fz_copy_in_child(const struct fz_copy *copy);

#endif
