/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_MAKE_H
#define FZ_RUNTIME_FIBER_MAKE_H

/*
 * runtime/fiber/make.h - a stack and a context for a fiber when the pool has none.
 *
 * Where a limit leaves no kernel thread for a moment, ours that are idle, or about to
 * end, make room; threads that are about to end leave theirs.  Where memory is limited,
 * we have taken some of what libc would have had for the stack: one whose size nobody
 * has asked for may be smaller.
 */

#include "runtime/fiber/fiber.h"

/*
 * live is what it runs first.  In the runtime, which it leaves and enters again, and may
 * park.  Returns 0 or -EAGAIN.
 */
int fz_fiber_make(struct fz_fiber *self, const struct fz_birth *birth,
		  void (*live)(struct fz_fiber *), struct fz_fiber **ret_fiber);

#endif
