/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_PARENT_H
#define FZ_PRELOAD_PROCESS_PARENT_H

/*
 * preload/process/parent.h - calls that wait with __WNOTHREAD: for children of the caller, and not
 * of other threads.
 */

#include <sys/wait.h>

#include "preload/gate.h"
#include "runtime/fiber/parent.h"

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
