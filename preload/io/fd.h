/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_FD_H
#define FZ_PRELOAD_IO_FD_H

/* preload/io/fd.h - for other files that close descriptors. */

/*
 * To be called before a descriptor is closed or replaced: submits requests that are queued for
 * it, and drops what fdtab remembers of it. Any thread; no cancellation point.
 */
void fz_fd_forget(int fd);

/* To be called after the descriptor has been closed or replaced. Keeps errno. */
void fz_fd_closed(int fd);

struct fz_fiber;

/*
 * Close a descriptor by libc's function, with both of the above. It may wait: for a linger time, a
 * terminal, or a file server. self: the calling fiber, or NULL.
 */
int fz_fd_close(struct fz_fiber *self, int fd, int (*real)(int fd));

#endif
