/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_REGISTRY_H
#define FZ_RUNTIME_FIBER_REGISTRY_H

/*
 * runtime/fiber/registry.h - who is there: all fibers alive, how many threads, their tids.
 *
 * What others ask of it is in runtime/fiber/fiber.h; this is for births and ends.  All in the
 * runtime, no lock held.
 */

#include "runtime/fiber/fiber.h"

void fz_registry_add(struct fz_fiber *fiber);

/* Returns true if it was the last thread. */
bool fz_registry_remove(struct fz_fiber *fiber);

/* After that: ends the process as libc does. */
_Noreturn void fz_registry_last_ended(struct fz_fiber *self);

/* p: where the caller runs, NULL for a native thread. */
int fz_registry_new_tid(struct fz_processor *p);

/* NULL: it has ended. */
void fz_registry_set_main(struct fz_fiber *fiber);

#endif
