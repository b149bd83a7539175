/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_KERNEL_STATE_H
#define FZ_PRELOAD_THREAD_KERNEL_STATE_H

/*
 * preload/thread/kernel_state.h - what the kernel keeps for each of its threads.
 *
 * A fiber that changes it is wired first: the change stays with it, and does not meet
 * whoever uses its carrier next.  Threads that it makes are native and inherit it; so
 * are those that a native thread makes after such a change.
 */

#include "runtime/fiber/fiber.h"

/* The calling thread is about to.  Before the first thread is made: nothing. */
void fz_wire_for_state(void);

/* Do these change the calling thread, and only it? */
bool fz_prctl_is_of_thread(int option);
bool fz_syscall_is_of_thread(long number);

#endif
