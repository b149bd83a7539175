/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_KERNEL_STATE_H
#define FZ_PRELOAD_THREAD_KERNEL_STATE_H

/*
 * preload/thread/kernel_state.h - state that the kernel keeps for each kernel thread.
 *
 * A fiber that changes such state is wired first: the change stays with the fiber, and does not
 * affect the fiber that uses the carrier next. Threads that the wired fiber makes are native and
 * inherit the state; so are threads that a native thread makes after such a change.
 */

#include "runtime/fiber/fiber.h"

/*
 * Called by a thread that is about to change state of its kernel thread: a fiber is wired. name: the
 * function that changes the state, or the state; a constant string to be shown. Does nothing before the
 * runtime runs.
 */
void fz_wire_for_state_of(const char *name);
#define fz_wire_for_state() fz_wire_for_state_of(__func__)

/* Called after fz_wire_for_state(), when the calling thread has unshared its table of descriptors. */
void fz_files_are_own(void);

/* Does the call change state of the calling thread only? */
bool fz_prctl_is_of_thread(int option);
bool fz_syscall_is_of_thread(long number);

#endif
