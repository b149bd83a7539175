/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_SOCKET_H
#define FZ_RUNTIME_IO_SOCKET_H

/*
 * runtime/io/socket.h - what runtime/io/io.c needs of sockets besides runtime/io/io.h.
 */

#include "runtime/fiber/fiber.h"

struct iovec;

/* readv and writev on a socket: 0 < count <= IOV_MAX. */
int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct iovec *iov, int count);
int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, const struct iovec *iov, int count);

#endif
