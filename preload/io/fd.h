/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_FD_H
#define FZ_PRELOAD_IO_FD_H

/*
 * preload/io/fd.h - what preload/io/fd.c does for others that close descriptors.
 */

/*
 * Before a descriptor changes its meaning: what is queued for it goes to the kernel,
 * and what we remember of it is dropped.  Any thread; no cancellation point.
 */
void fz_fd_forget(int fd);

/* It has been.  Keeps errno. */
void fz_fd_closed(int fd);

#endif
