/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_ALTSTACK_H
#define FZ_RUNTIME_SIGNAL_ALTSTACK_H

/*
 * runtime/signal/altstack.h - the alternate signal stack of a fiber.
 *
 * The kernel keeps it by kernel thread, so whoever switches to a fiber whose
 * alternate stack is another than the carrier's has the kernel changed: one system
 * call, for threads that have one.  Only then a handler of stack overflow finds it.
 */

#include "runtime/sched/carrier.h"
#include "runtime/fiber/fiber.h"

/* A new life: none. */
void fz_alt_stack_init(struct fz_fiber *f);

/* The main thread becomes a fiber: what the kernel has is its own. */
void fz_alt_stack_adopt(struct fz_fiber *f, struct fz_carrier *c);

/* On f's stack, after a switch to it on c, whose own context f may be. */
void fz_alt_stack_load(struct fz_fiber *f, struct fz_carrier *c);

/*
 * Does the caller run on it?  Then no signal may come after it is left and before the next
 * one's is loaded: its frame would be put where the caller's are.
 */
static inline bool fz_alt_stack_in_use(const struct fz_fiber *self)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return FZ_UNLIKELY(self->has_alt_stack) &&
	       here - (uintptr_t)self->sig.alt_stack.sp < self->sig.alt_stack.size;
}

/*
 * sigaltstack(2) for the calling fiber, outside the runtime.  Pointers are to the
 * kernel's stack_t and may be NULL or bad.  Returns 0 or -errno.
 */
int fz_alt_stack_change(struct fz_fiber *self, const void *stack, void *ret_old);

/*
 * Around a handler that the kernel called: with SS_AUTODISARM there is no alternate
 * stack meanwhile, and returning restores what was there before.
 */
void fz_alt_stack_handler_began(struct fz_fiber *self);
void fz_alt_stack_handler_ends(struct fz_fiber *self, struct fz_alt_stack *to_be_restored);

/*
 * For stack overflow to be reported, fibers that have no alternate stack run with
 * one of the carrier's from now on.  Not if the program has handlers that would
 * run on it (`on` false).
 */
void fz_alt_stack_for_reports(bool on);
void fz_alt_stack_carrier_started(struct fz_carrier *c);

#endif
