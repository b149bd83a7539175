/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_LIMIT_H
#define FZ_PRELOAD_PROCESS_LIMIT_H

/*
 * preload/process/limit.h - the library does not raise RLIMIT_NOFILE while the caller makes a process or executes a
 * program, which would inherit it.  Outside the runtime; any thread, also a handler.
 */

#include "runtime/backend/own_fd.h"
#include "runtime/sched/sched.h"

static inline void fz_limit_hold(void)
{
	const uint32_t nested = fz_bar_handlers();

	fz_own_fd_hold_limit();
	fz_allow_handlers(nested);
}

static inline void fz_limit_release(void)
{
	const uint32_t nested = fz_bar_handlers();

	fz_own_fd_release_limit();
	fz_allow_handlers(nested);
}

#endif
