/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_POOL_H
#define FZ_RUNTIME_FIBER_POOL_H

/*
 * runtime/fiber/pool.h - ended fibers, for their next life: a few with each processor,
 * the rest with all.
 *
 * All in the runtime.  p is NULL for a native thread.
 */

#include "runtime/fiber/fiber.h"

struct fz_processor;

/* It is the pool's from now on. */
void fz_pool_put(struct fz_processor *p, struct fz_fiber *fiber);

/* One whose stack fits, or NULL. */
struct fz_fiber *fz_pool_get(struct fz_processor *p, const struct fz_birth *birth);

/*
 * There is no memory for a new one: looks at those of other processors too, idle or
 * not.  Slow.
 */
struct fz_fiber *fz_pool_search(const struct fz_birth *birth);

void fz_pool_after_fork(void);

#endif
