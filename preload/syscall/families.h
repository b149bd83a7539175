/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SYSCALL_FAMILIES_H
#define FZ_PRELOAD_SYSCALL_FAMILIES_H

/*
 * preload/syscall/families.h - system calls by number, grouped by subject.
 *
 * Each function knows the numbers of its group.  It returns true if it has made the call; *ret and
 * errno are then as libc's syscall() leaves them.  a: the six words of arguments.  self: the calling
 * fiber; only an argument named self_or_null may be NULL.
 */

#include <stdbool.h>
#include <sys/syscall.h>

#include "preload/gate.h"

/* The kernel's size of a set of signals, in bytes. */
enum { FZ_KERNEL_SIGSET_SIZE = 8 };

/* Make the system call itself. */
static inline long fz_syscall_real(long number, const long *a)
{
	return fz_real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Callable by any thread. */
bool fz_syscall_descriptor(long number, const long *a, long *ret);
bool fz_syscall_process(long number, const long *a, long *ret);
bool fz_syscall_thread(struct fz_fiber *self_or_null, long number, const long *a, long *ret);

/* Callable by fibers only, with cancellation disabled. */
bool fz_syscall_file(long number, const long *a, long *ret);
bool fz_syscall_socket(long number, const long *a, long *ret);
bool fz_syscall_poll(long number, const long *a, long *ret);
bool fz_syscall_wait(struct fz_fiber *self, long number, const long *a, long *ret);
bool fz_syscall_signal(struct fz_fiber *self, long number, const long *a, long *ret);

#endif
