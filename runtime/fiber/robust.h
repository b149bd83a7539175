/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_ROBUST_H
#define FZ_RUNTIME_FIBER_ROBUST_H

/*
 * runtime/fiber/robust.h - the mutexes that a thread holds when it ends, and that tell their next
 * owner so.
 */

#include "runtime/fiber/fiber.h"

/*
 * Do what the kernel does at the end of a kernel thread with the caller's, which is wired: release all mutexes of
 * its robust list; and empty the list.  Of those that inherit priority and are waited for, the kernel chooses the
 * next owner when the kernel thread ends.  stays: it does not end; then the kernel chooses now, and does not tell
 * the next owner.  In the runtime, with all signals blocked.
 */
void fz_robust_release(struct fz_fiber *self, bool stays);

#endif
