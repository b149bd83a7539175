/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_FD_H
#define FZ_PRELOAD_IO_FD_H

/* preload/io/fd.h - for libc's own calls that open and close descriptors. */

struct fz_blocked;
struct fz_fiber;

/*
 * End a call that opens a file.  fd: its result, a new descriptor or -1.  path: the file, or NULL if unknown.
 * Returns fd.
 */
int fz_fd_opened(const struct fz_blocked *call, const char *path, int fd);

/*
 * Close a descriptor by libc's function. It may wait: for a linger time, a terminal, or a file
 * server. No cancellation point. self: the calling fiber, or NULL.
 */
int fz_fd_close(struct fz_fiber *self, int fd, int (*real)(int fd));

#endif
