/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_FD_H
#define FZ_PRELOAD_IO_FD_H

/* preload/io/fd.h - for libc's own calls that close descriptors. */

struct fz_fiber;

/*
 * Close a descriptor by libc's function. It may wait: for a linger time, a terminal, or a file
 * server. No cancellation point. self: the calling fiber, or NULL.
 */
int fz_fd_close(struct fz_fiber *self, int fd, int (*real)(int fd));

#endif
