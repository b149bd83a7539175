/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_MAKE_H
#define FZ_RUNTIME_FIBER_MAKE_H

/*
 * runtime/fiber/make.h - make a stack and a context for a fiber when the pool has none.
 *
 * If a limit leaves no kernel thread for a moment, idle carriers end to make room, and the
 * caller waits for threads that are about to end and takes over their stacks.  If memory is
 * limited, a stack whose size the program has not asked for may be smaller, because the library
 * itself uses some of the memory that libc would have had for stacks.
 */

#include "runtime/fiber/fiber.h"

/*
 * Make a fiber that runs live() first.  Called in the runtime, which it leaves and enters again;
 * may park.  Returns 0 or -EAGAIN.
 */
int fz_fiber_make(struct fz_fiber *self, const struct fz_birth *birth,
		  void (*live)(struct fz_fiber *), struct fz_fiber **ret_fiber);

#endif
