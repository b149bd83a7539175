/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_INIT_H
#define FZ_PRELOAD_INIT_H

/*
 * preload/init.h - from loaded to dormant to running.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/sched/sched.h"

/* Is the runtime running, that is, did a pthread_create start it? Callable by any thread. */
static inline bool fz_runtime_runs(void)
{
	/* acquire: pairs with fz_sched_start(). */
	return atomic_load_explicit(&fz_sched.started, memory_order_acquire);
}

/*
 * Start the runtime, unless it runs already. Called by pthread_create and its kin. Returns
 * false if no fiber can be made: threads are native for good (fz_stays_native), or the runtime
 * does not run yet and the caller is not the main thread, which must be the first fiber.
 */
bool fz_runtime_ready(void);

/* The constructor: from nothing to loaded. The second call does nothing. */
void fiberize_start(int argc, char **argv, char **envp);

/* Will threads be kernel threads for good (switched off, or something is missing)? */
bool fz_stays_native(void);

/*
 * Make all threads native for good. why: the reason to report; err: an error number to report, or 0.
 * Only while the runtime does not run, by the only thread.
 */
void fz_stay_native(const char *why, int err);

/* Once the runtime starts, the main thread is to stay a kernel thread (runtime/fiber/wire.h). */
void fz_wire_main_at_start(void);

/* The stack size, in bytes, of a thread that is created without a stack size of its own. */
size_t fz_default_stack_size(size_t of_libc);

/*
 * The name of the backend, and why a better one was not taken. Only while the runtime runs. The
 * text is static and overwritten by the next call.
 */
const char *fz_describe_backend(void);

#endif
