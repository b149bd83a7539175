/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_ROBUST_H
#define FZ_RUNTIME_FIBER_ROBUST_H

/*
 * runtime/fiber/robust.h - robust mutexes: if a thread ends while it holds one, the next owner learns that.
 */

#include "runtime/fiber/fiber.h"

/*
 * By a wired thread: do what the kernel does with robust mutexes when a kernel thread ends.  Release all
 * mutexes of the caller's robust list, and empty the list.  For a priority-inheriting mutex that is waited for,
 * the kernel chooses the next owner when the kernel thread ends.  stays: the kernel thread does not end; then
 * the kernel chooses the next owner now, but does not tell it that the owner died.  In the runtime, with all
 * signals blocked.
 */
void fz_robust_release(struct fz_fiber *self, bool stays);

#endif
