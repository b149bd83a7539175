/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_PARENT_H
#define FZ_RUNTIME_FIBER_PARENT_H

/*
 * runtime/fiber/parent.h - which thread has made a child. The kernel knows the kernel thread only,
 * which is some carrier.
 *
 * As natively, the children of a thread that has ended become the main thread's. A child whose
 * making the library has not seen counts as the main thread's, too: one made by an inline system
 * call, or before an exec.
 */

#include "runtime/fiber/fiber.h"

/* The calling thread has made this child. Does nothing if pid is not positive. Any thread. */
void fz_child_made(int pid);

/*
 * A signal of the child has come to the thread that makes a child at this moment. That may be before
 * fz_child_made(). Any context.
 */
void fz_child_may_be_new(int pid);

/* Returns the tid of the thread that has made the child, or 0 if that is not known. Any context. */
int fz_child_maker(int pid);

/* Is the child the calling thread's? */
bool fz_child_is_own(struct fz_fiber *self, int pid);

/*
 * Returns the next child of the calling thread, or 0 if there is no other. *place is where the
 * search goes on: 0 at first.
 */
int fz_child_next(struct fz_fiber *self, int *place);

/* A wait for this child has failed. Forget the child, unless the pid is another child's meanwhile. */
void fz_child_gone(int pid);

/*
 * The calling thread, which is native, ends. The kernel may give its tid to another thread; tids of
 * fibers are not used again.
 */
void fz_parent_ends(struct fz_fiber *self);

#endif
