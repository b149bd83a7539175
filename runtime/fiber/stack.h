/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_STACK_H
#define FZ_RUNTIME_FIBER_STACK_H

/*
 * runtime/fiber/stack.h - stacks from big reserved slabs, one size per slab.
 *
 * A stack is a guard area below and usable memory above it.  The guard is
 * installed with MADV_GUARD_INSTALL (Linux 6.13), which does not split the
 * mapping, so that a million stacks are a few thousand mappings.  On older kernels
 * mprotect makes the guard.  The pages of a stack where a fiber's record lies are never
 * unmapped.
 */

#include "runtime/base/base.h"

/*
 * Returns 0 or -errno.  *ret_low is the lowest usable byte, and *ret_size, at least size, says how
 * many bytes from there are usable.  Any thread in the runtime.
 */
int fz_stack_alloc(size_t size, size_t guard, void **ret_low, size_t *ret_size);

/*
 * Free a stack that had no fiber; size and guard as given to
 * fz_stack_alloc().  Any thread in the runtime, or before the runtime has started.
 */
void fz_stack_free(void *low, size_t size, size_t guard);

/*
 * Unmap the stack of a thread that libc has ended, except the pages of keep, which are filled with
 * zeros.  A later stack of this size is mapped at this place again, unless the program has mapped
 * something there.  usable is what fz_stack_alloc() returned, guard what it was called with.  Any
 * thread in the runtime.
 */
void fz_stack_give_back(void *low, size_t usable, size_t guard, const void *keep,
			size_t keep_size);

/* Did a limit count mapped memory (RLIMIT_AS, RLIMIT_DATA) when a slab was last mapped?  A hint. */
bool fz_stack_is_limited(void);

/* Is there room to remember one more stack that is given back?  Any thread in the runtime. */
bool fz_stack_can_give_back(void);

/* About how many bytes of the stacks given back are still mapped.  Any thread in the runtime. */
size_t fz_stack_left(void);

/* Unmap what is reserved and not in use.  Any thread in the runtime, or before it has started. */
void fz_stack_drop_reserve(void);

/*
 * Say whether the kernel locks what is mapped from now on (mlockall).  While it does, nothing is
 * reserved.  Returns the value before.
 */
bool fz_stack_set_all_locked(bool locked);

/*
 * The bounds of a stack, for the program: whole pages, the same at each call, because programs
 * such as Java protect the lowest pages.  *ret_size is the size that was asked for, rounded up to
 * pages; the end may be beyond low + size.
 */
void fz_stack_bounds(void *low, size_t size, void **ret_bottom, size_t *ret_size);

/* Return the memory below the stack pointer of a context that does not run to the kernel. */
void fz_stack_trim(void *low, const void *sp);

/* In the child of a fork: another thread of the parent may have held the lock. */
void fz_stack_after_fork(void);

#endif
