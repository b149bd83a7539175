/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_STACK_H
#define FZ_RUNTIME_FIBER_STACK_H

/*
 * runtime/fiber/stack.h - stacks from big MAP_NORESERVE slabs, one size per slab.
 *
 * A stack is a guard area below and usable memory above it.  The guard is
 * installed with MADV_GUARD_INSTALL (Linux 6.13), which does not split the
 * mapping, so that a million stacks are a few thousand mappings; with mprotect
 * where that is missing.  Stacks are never given back: their fibers are reused.
 */

#include "runtime/base/base.h"

/*
 * Returns 0 or -errno.  *ret_low is the lowest usable byte, size (rounded up to
 * pages) bytes from there are usable.  Any thread in the runtime.
 */
int fz_stack_alloc(size_t size, size_t guard, void **ret_low, size_t *ret_size);

/*
 * Of a thread that could not be made; size and guard as they were asked for.  Any
 * thread outside the runtime.
 */
void fz_stack_free(void *low, size_t size, size_t guard);

/*
 * What the program is told of a stack: whole pages, always the same ones, of which
 * it may protect the lowest, as Java does.  The size is the one that was asked for,
 * rounded up; the end may be beyond low + size.
 */
void fz_stack_bounds(void *low, size_t size, void **ret_bottom, size_t *ret_size);

/* Give back the memory below the stack pointer of a context that does not run. */
void fz_stack_trim(void *low, const void *sp);

/* In the child of a fork: another thread of the parent may have held the lock. */
void fz_stack_after_fork(void);

#endif
