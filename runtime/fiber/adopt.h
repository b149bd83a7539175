/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_ADOPT_H
#define FZ_RUNTIME_FIBER_ADOPT_H

/*
 * runtime/fiber/adopt.h - contexts with everything that libc gives a thread.
 *
 * libc creates a thread; the thread cuts the kernel's ties to its TCB, saves its
 * context and ends, below libc's back.  What is left is a stack, a TCB and TLS
 * blocks that any carrier can run (design.md, fact 1).
 */

#include "runtime/fiber/fiber.h"

/*
 * What runs on the context when it is entered.  If it returns, libc ends the
 * kernel thread it runs on, and the context with it.
 */
typedef void fz_context_body(struct fz_fiber *self);

/*
 * stack and size as from fz_stack_alloc().  Blocks the calling kernel thread
 * for 20-100 us.  Any thread, outside the runtime.  Returns 0 or -errno.
 */
int fz_adopt_context(void *stack, size_t size, fz_context_body *body,
		     struct fz_fiber **ret_fiber);

/*
 * The calling kernel thread is not that of this TCB any more: libc signals it no
 * more for changes of ids, and what it has sent is handled.  Only before it ends:
 * the TCB looks like that of a thread that exits.
 */
void fz_adopt_cut_signals(uintptr_t tcb);

/* The kernel must not write to the calling thread's rseq area any more. */
void fz_adopt_cut_rseq(void);

#endif
