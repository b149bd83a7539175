/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_FILE_H
#define FZ_RUNTIME_IO_FILE_H

/*
 * runtime/io/file.h - transfers to and from files, and waiting until they are on disk.
 */

#include "runtime/fiber/fiber.h"

struct iovec;

/* How to go about what may wait for the disk: FIBERIZE_IO. */
enum fz_io_policy {
	FZ_IO_AUTO,	/* by what happened last with the descriptor */
	FZ_IO_DIRECT,	/* the real call first, wherever there is a choice */
	FZ_IO_RING,	/* a request on the ring first, where that needs no worker thread */
};
extern enum fz_io_policy fz_io_policy FZ_HIDDEN;

/* info as from fz_fdtab_look_up(), of kind FZ_FD_FILE.  offset may be FZ_IO_CURPOS. */
int64_t fz_io_file_read(struct fz_fiber *self, int fd, uint32_t info, const struct iovec *iov,
			int count, int64_t offset);
/* flags: RWF_*. */
int64_t fz_io_file_write(struct fz_fiber *self, int fd, uint32_t info,
			 const struct iovec *iov, int count, int64_t offset, int flags);

#endif
