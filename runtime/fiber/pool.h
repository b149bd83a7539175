/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_POOL_H
#define FZ_RUNTIME_FIBER_POOL_H

/*
 * runtime/fiber/pool.h - ended fibers that wait for their next life: a few with each processor,
 * the rest in a list for all.  After a burst an idle carrier gives most of them back
 * (runtime/sched/carrier_idle.c); as many stay as libc keeps stacks.
 *
 * Call all functions in the runtime.  p is the caller's processor, NULL for a native thread.
 */

#include "runtime/fiber/fiber.h"

struct fz_processor;

/* Give an ended fiber to the pool, which owns it from now on. */
void fz_pool_put(struct fz_processor *p, struct fz_fiber *fiber);

/* Take a fiber whose stack fits, or NULL. */
struct fz_fiber *fz_pool_get(struct fz_processor *p, const struct fz_birth *birth);

/*
 * Like fz_pool_get(), when there is no memory for a new fiber: looks at the fibers of all
 * processors, idle or not.  Slow.
 */
struct fz_fiber *fz_pool_search(const struct fz_birth *birth);

/*
 * By the monitor, now and then: fibers that nobody has needed for a second are surplus, and an idle
 * carrier gives them back.  Returns true if there may be more of them later.
 */
bool fz_pool_shrink(void);

/* By an idle carrier, in its own context: let libc end what is surplus, and give the stacks back. */
void fz_pool_end_surplus(void);

/*
 * For a thread that has joined another one, if memory is limited: give one stack back at once if
 * the pool has more than enough.  Outside the runtime.
 */
void fz_pool_end_one(struct fz_fiber *self);

void fz_pool_after_fork(void);

#endif
