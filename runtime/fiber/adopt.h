/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_ADOPT_H
#define FZ_RUNTIME_FIBER_ADOPT_H

/*
 * runtime/fiber/adopt.h - contexts with everything that libc gives a thread.
 *
 * libc creates a thread; the thread cuts the kernel's ties to its TCB, saves its
 * context and ends without libc's knowledge.  Its stack, TCB and TLS blocks are
 * left, and any carrier can run them.
 */

#include "runtime/fiber/fiber.h"

/*
 * The function that runs on the context when a carrier enters it.  If the function returns,
 * libc ends the kernel thread that runs it, and the context with it.
 */
typedef void fz_context_body(struct fz_fiber *self);

/*
 * Make a context on this stack, which comes from fz_stack_alloc().  Takes 20 us.  Any thread,
 * outside the runtime.  Returns 0 or -errno.
 *
 * *ret_fiber has its TLS and its handle at once.  A carrier may enter it, and fz_fiber.sp is
 * valid, when fz_adopt_is_over() returns true: then its kernel thread has ended, or is about to.
 * That takes another 20 us, or longer if the kernel runs other threads first.  fz_adopt_await()
 * waits for it, for at most `timeout` if that is not NULL, and blocks the calling kernel thread.
 */
int fz_adopt_context(void *stack, size_t size, fz_context_body *body,
		     struct fz_fiber **ret_fiber);

static inline bool fz_adopt_is_over(const struct fz_fiber *f)
{
	/* acquire: pairs with the release in fz_adopt(). */
	return atomic_load_explicit(&f->in_runtime, memory_order_acquire);
}

void fz_adopt_await(struct fz_fiber *f, const struct __kernel_timespec *timeout);

/* After a birth: does the kernel still count the birth's kernel thread? */
static inline bool fz_adopt_has_thread(const struct fz_fiber *f)
{
	/* acquire: pairs with the kernel, which clears it. */
	return atomic_load_explicit(&f->thread.being_born, memory_order_acquire);
}

/* Wait until the birth's kernel thread is gone, at most until timeout.  Any thread; blocks the calling kernel thread. */
void fz_adopt_await_thread(struct fz_fiber *f, const struct __kernel_timespec *timeout);

/*
 * Undo fz_adopt_context(), for a fiber between two lives that no other thread can reach: libc ends
 * and forgets the thread that it takes the fiber for.  Blocks for some 20 us, and for locks of libc's.
 * By a carrier without a processor, or outside the runtime.  Returns 0, or -errno; then the fiber is as it was.
 */
int fz_adopt_end(struct fz_fiber *fiber);

/* Has fz_adopt_end() entered this fiber's context?  Then its body must return, and libc ends the thread. */
bool fz_adopt_ends(struct fz_fiber *self);

/*
 * Separate the calling kernel thread from this TCB: libc sends it no more signals for changes
 * of user and group ids, and the signals already sent are handled on return.  Call this only
 * before the kernel thread ends: afterwards the TCB looks like an exiting thread's.
 */
void fz_adopt_cut_signals(uintptr_t tcb);

/*
 * Unregister rseq for the calling kernel thread, so that the kernel does not write to its TLS any
 * more.  libc then registers none in threads that the caller makes later.
 */
void fz_adopt_cut_rseq(void);

#endif
