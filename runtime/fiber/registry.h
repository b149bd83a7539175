/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_REGISTRY_H
#define FZ_RUNTIME_FIBER_REGISTRY_H

/*
 * runtime/fiber/registry.h - the registry: all living fibers, how many threads, their tids.
 *
 * Other rooms use the functions in runtime/fiber/fiber.h; the functions here are for births and
 * ends.  Call them in the runtime, with no lock held.
 */

#include "runtime/base/lock.h"
#include "runtime/fiber/fiber.h"

/* Fields that are not atomic are guarded by lock.  Used by registry.c; runtime/inspect shows them. */
extern struct fz_registry {
	struct fz_lock lock;
	struct fz_fiber *all;		/* linked by fz_fiber.all */
	struct fz_fiber *next;		/* where fz_fiber_each_of() goes on; NULL: at the end */
	_Atomic uint32_t alive;		/* threads: fibers, wired ones too, and native threads */
	_Atomic int next_tid;
	_Atomic(struct fz_fiber *) main;
} fz_registry FZ_HIDDEN;

void fz_registry_add(struct fz_fiber *fiber);

/* Returns true if the fiber was the last thread of the process. */
bool fz_registry_remove(struct fz_fiber *fiber);

/* End the process as libc does.  After fz_registry_remove() has returned true. */
_Noreturn void fz_registry_last_ended(struct fz_fiber *self);

/* A tid for a new fiber.  p: the caller's processor, NULL for a native thread. */
int fz_registry_new_tid(struct fz_processor *p);

/* Note the main thread's fiber; NULL when it has ended. */
void fz_registry_set_main(struct fz_fiber *fiber);

#endif
