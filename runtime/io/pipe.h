/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_PIPE_H
#define FZ_RUNTIME_IO_PIPE_H

/*
 * runtime/io/pipe.h - reading and writing pipes and FIFOs that may wait, for runtime/io/io.c.
 *
 *	pipe	try without waiting, then the ring (read), or readiness (write)
 *	FIFO	the real call once it is ready (read), or announced unless it is (write)
 */

#include "runtime/fiber/fiber.h"

struct iovec;

/* info as from fz_fdtab_look_up(), of kind FZ_FD_PIPE; not O_NONBLOCK. */
int64_t fz_io_pipe_read(struct fz_fiber *self, int fd, uint32_t info, const struct iovec *iov,
			int count);
int64_t fz_io_pipe_write(struct fz_fiber *self, int fd, const struct iovec *iov, int count);

#endif
