/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_PARENT_H
#define FZ_PRELOAD_PROCESS_PARENT_H

/*
 * preload/process/parent.h - calls that wait with __WNOTHREAD: for children that the calling thread has
 * made, not for those of other threads.
 */

#include <sys/wait.h>

#include "preload/gate.h"
#include "runtime/fiber/parent.h"

/*
 * Called by a fiber, wired or not, that waits with __WNOTHREAD. Returns a child for which the caller then
 * waits without that flag: one that has changed its state as options say, or the only one that matches type
 * and id. If there are several, waits until one of them has changed its state. Returns 0 if options has
 * WNOHANG and no child has; -ECHILD if there is none; -EINTR if a handler ends the call.
 */
pid_t fz_child_of_caller(struct fz_fiber *self, int type, id_t id, int options);

/* Must the caller ask fz_child_of_caller() first? */
static inline bool fz_waits_for_own(int options)
{
	return FZ_UNLIKELY(options & __WNOTHREAD) && fz_is_fiber(fz_self());
}

#endif
