/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_PARENT_H
#define FZ_PRELOAD_PROCESS_PARENT_H

/*
 * preload/process/parent.h - which thread has made a child. The kernel knows the kernel thread only,
 * which is some carrier. For calls that wait with __WNOTHREAD: for children of the caller, and not
 * of other threads.
 *
 * As natively, the children of a thread that has ended are the main thread's. So is a child that
 * the library has not seen being made: by popen, by an inline system call, before an exec.
 */

#include <sys/wait.h>

#include "preload/gate.h"

/* The calling thread has made this child. Does nothing if pid is not positive. */
void fz_child_made(pid_t pid);

/*
 * A fiber, wired or not, is about to wait with __WNOTHREAD. Returns the child to wait for without
 * that flag: one that has changed its state as options say, or the only one. 0: none has, and
 * options has WNOHANG. Or -ECHILD; -EINTR if a handler ends the call. Waits until there is such a
 * child.
 */
pid_t fz_child_of_caller(struct fz_fiber *self, int type, id_t id, int options);

/* Is fz_child_of_caller() needed? */
static inline bool fz_waits_for_own(int options)
{
	return FZ_UNLIKELY(options & __WNOTHREAD) && fz_is_fiber(fz_self());
}

#endif
