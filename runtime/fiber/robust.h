/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_ROBUST_H
#define FZ_RUNTIME_FIBER_ROBUST_H

/*
 * runtime/fiber/robust.h - the mutexes that a thread holds when it ends, and that tell their next
 * owner so.
 */

#include <stdbool.h>

/*
 * Do what the kernel does at the end of the calling kernel thread, whose tid that is: release all mutexes
 * of its robust list.  Of those that inherit priority and are waited for, the kernel has to choose the next
 * owner: stays: it is asked to now, and the next owner is not told, because the kernel thread goes on.
 * In the runtime, with all signals blocked.
 */
void fz_robust_release(int tid, bool stays);

#endif
