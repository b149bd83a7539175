/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_OP_INTERNAL_H
#define FZ_RUNTIME_IO_OP_INTERNAL_H

/*
 * runtime/io/op_internal.h - what op.c and op_ready.c share: the calls of op.h where
 * the backend is epoll.
 */

#include "runtime/io/op.h"

int fz_op_ready_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		     unsigned flags);
int fz_op_ready_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
		     fz_nsec deadline, unsigned flags);

#endif
