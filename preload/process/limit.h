/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_LIMIT_H
#define FZ_PRELOAD_PROCESS_LIMIT_H

/*
 * preload/process/limit.h - the library does not raise RLIMIT_NOFILE while the caller makes a process or executes a
 * program, which would inherit it.  Outside the runtime; any thread, also a handler.
 */

#include "runtime/backend/own_fd.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/* Call fn, which takes a lock of the runtime's.  A native thread looks afterwards for signals that came meanwhile. */
static inline void fz_locks_briefly(void (*fn)(void))
{
	struct fz_fiber *self = fz_self();
	uint32_t nested;

	fz_signal_bar(self);
	nested = fz_bar_handlers();
	fn();
	fz_allow_handlers(nested);
	fz_signal_allow(self);
}

static inline void fz_limit_hold(void)
{
	fz_locks_briefly(fz_own_fd_hold_limit);
}

static inline void fz_limit_release(void)
{
	fz_locks_briefly(fz_own_fd_release_limit);
}

#endif
