/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_ALTSTACK_H
#define FZ_RUNTIME_SIGNAL_ALTSTACK_H

/*
 * runtime/signal/altstack.h - the alternate signal stack of a fiber.
 *
 * The kernel keeps one alternate stack for each kernel thread. A switch to a fiber whose
 * alternate stack differs from the carrier's therefore costs one system call. Without that call,
 * the handler of a stack overflow would not run on the fiber's alternate stack.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/sched/carrier.h"

/* A new life begins without an alternate stack. */
void fz_alt_stack_init(struct fz_fiber *f);

/*
 * The main thread becomes a fiber, or a wired fiber has ended and stops being wired: take over the kernel
 * thread's alternate stack as f's own.
 */
void fz_alt_stack_adopt(struct fz_fiber *f, struct fz_carrier *c);

/* Called on f's stack, after a switch to f on c. f may be c's own context. */
void fz_alt_stack_load(struct fz_fiber *f, struct fz_carrier *c);

/*
 * Does the caller run on its alternate stack? Then no signal may come between leaving that
 * stack and loading the next fiber's: the kernel would put the signal frame over the caller's
 * frames.
 */
static inline bool fz_alt_stack_in_use(const struct fz_fiber *self)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return FZ_UNLIKELY(self->has_alt_stack) &&
	       here - (uintptr_t)self->sig.alt_stack.sp < self->sig.alt_stack.size;
}

/*
 * sigaltstack(2) for the calling fiber, outside the runtime. stack and ret_old point to the
 * kernel's stack_t, and may be NULL or bad. Returns 0 or -errno.
 */
int fz_alt_stack_change(struct fz_fiber *self, const void *stack, void *ret_old);

/*
 * Around a handler that the kernel called. With SS_AUTODISARM the thread has no alternate stack
 * during the handler; returning restores the previous one.
 */
void fz_alt_stack_handler_began(struct fz_fiber *self);
void fz_alt_stack_handler_ends(struct fz_fiber *self, struct fz_alt_stack *to_be_restored);

/*
 * For a handler that may let other fibers run. If it runs on the carrier's stack for reports, the next handler
 * on this kernel thread would overwrite its frames. Then this returns true, and the caller must return at once
 * and have its signal sent again: the kernel thread has no alternate stack when the handler has returned.
 */
bool fz_alt_stack_leave_report(struct fz_fiber *self, struct fz_alt_stack *to_be_restored);

/*
 * So that a stack overflow can be reported, fibers without an alternate stack run with one of
 * the carrier's from now on. `on` false: never again, because the program has handlers that
 * would run on it.
 */
void fz_alt_stack_for_reports(bool on);
void fz_alt_stack_carrier_started(struct fz_carrier *c);

#endif
