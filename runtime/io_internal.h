/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_INTERNAL_H
#define FZ_RUNTIME_IO_INTERNAL_H

/*
 * runtime/io_internal.h - what io.c, io_socket.c and io_poll.c share.
 */

#include "runtime/fdtab.h"
#include "runtime/io.h"
#include "runtime/op.h"
#include "runtime/park.h"

#include <asm/errno.h>

/* The kernel's MAX_RW_COUNT: more is never transferred by one call. */
#define FZ_IO_MAX ((size_t)0x7ffff000)

static inline uint32_t fz_io_clamp(size_t n)
{
	return (uint32_t)(n < FZ_IO_MAX ? n : FZ_IO_MAX);
}

/*
 * Run op to its end.  timeout_error is the answer at the deadline; restart tells
 * whether the call goes on after handlers that all have SA_RESTART.
 */
int64_t fz_io_run(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart);

/* Cancellation requested before the call waits for anything: act on it. */
void fz_io_test_cancel(struct fz_fiber *self);

#endif
