/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_INIT_H
#define FZ_PRELOAD_INIT_H

/*
 * preload/init.h - from loaded to dormant to running.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/sched/sched.h"

/* Have threads been fibers since the first pthread_create?  By anybody. */
static inline bool fz_runtime_runs(void)
{
	/* acquire: pairs with fz_sched_start(). */
	return atomic_load_explicit(&fz_sched.started, memory_order_acquire);
}

/*
 * Leave dormancy if that has not happened and is possible.  By the first
 * pthread_create.  False: threads are native, now and for good.
 */
bool fz_runtime_ready(void);

/* Threads are kernel threads for good: switched off, or something is missing. */
bool fz_stays_native(void);

/* When that happens the main thread is to stay a kernel thread (fz_fiber_wire). */
void fz_wire_main_at_start(void);

/* The stack of a thread for which the program gave no attributes. */
size_t fz_default_stack_size(size_t of_libc);

/* What waits for the fibers, and why not something better.  Once running. */
const char *fz_describe_backend(void);

/* In a fork's child, as early as possible. */
void fz_after_fork_in_child(void);

#endif
