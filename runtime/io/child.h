/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_CHILD_H
#define FZ_RUNTIME_IO_CHILD_H

/*
 * runtime/io/child.h - waiting for a child process on the ring.
 */

#include "runtime/fiber/fiber.h"

/*
 * Wait until a child of that kind (P_*, id as for waitid) can be waited for in one
 * of the ways in options (WEXITED ...); it still can afterwards.  Returns 1, 0 if
 * this kernel cannot say, -EINTR.  From a fiber, outside the runtime; a cancellation point.
 */
int fz_io_await_child(struct fz_fiber *self, int type, int id, int options);

#endif
