/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_LIMIT_H
#define FZ_PRELOAD_PROCESS_LIMIT_H

/*
 * preload/process/limit.h - the library does not raise RLIMIT_NOFILE while the caller makes a process or executes a
 * program, which would inherit it.  Outside the runtime; any thread, also a handler.
 */

#include "preload/libc/redirect.h"
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

/*
 * Around system(), which returns when its command has ended: libc's wait for that ends the first thread's hold, because
 * the process exists then.  Where that wait is not seen (redirect.h), the limit is not held.
 */
static inline void fz_limit_hold_until_wait(struct fz_fiber *self)
{
	if (!fz_redirect_is_on() || self->thread.holds_limit)
		return;
	fz_limit_hold();
	self->thread.holds_limit = true;
}

static inline void fz_limit_wait_begins(struct fz_fiber *self)
{
	if (FZ_LIKELY(!self->thread.holds_limit))
		return;
	self->thread.holds_limit = false;
	fz_limit_release();
}

#endif
