/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_ALONE_H
#define FZ_RUNTIME_SCHED_ALONE_H

/*
 * runtime/sched/alone.h - fibers that a kernel thread would serve as well.
 *
 * A request pays because it shares system calls and carriers with others.  A fiber beside which
 * nothing waits for its processor waits with the program's own call, announced: one system call,
 * as natively, instead of a request, two changes of the signal mask and a switch there and back.
 * It is as any announced call: if others need the processor meanwhile, they take it.
 *
 * A fiber is alone if nobody else was runnable at its last FZ_ALONE_FROM waits, all of them for
 * descriptors.  One that then loses its processor must be alone for longer.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/sched/park.h"

enum {
	FZ_ALONE_FROM = 100,		/* waits one after the other */
	FZ_ALONE_MOVED,			/* and it has been moved */
	FZ_ALONE_AGAIN = 2000,
};

/* The fiber parks; others: there is another one to run.  By the carrier. */
static inline void fz_alone_note_wait(struct fz_fiber *self, bool others)
{
	const bool io = self->call.waits_for == FZ_FOR_REQUEST ||
			self->call.waits_for == FZ_FOR_READY;

	if (FZ_UNLIKELY(!others && io)) {
		self->call.was_alone = true;
		if (self->waits_alone < FZ_ALONE_FROM)
			self->waits_alone++;
	} else if (FZ_UNLIKELY(self->call.was_alone)) {
		self->call.was_alone = false;
		if (self->waits_alone > 0)
			self->waits_alone = 0;
	}
}

/* Others needed the fiber's processor while it was in its code or in a call. */
static inline void fz_alone_note_loss(struct fz_fiber *self)
{
	if (self->waits_alone >= FZ_ALONE_FROM)
		self->waits_alone = -FZ_ALONE_AGAIN;
}

/* The rare part of fz_is_alone(). */
bool fz_alone_look(struct fz_fiber *self);

/*
 * Should the caller, about to wait for a descriptor, make the real call, announced?  May move the
 * fiber to a processor on which nobody waits for anything, and to a carrier whose calls no request
 * interrupts.  Outside the runtime; any thread.
 */
static inline bool fz_is_alone(struct fz_fiber *self)
{
	return FZ_UNLIKELY(self->call.was_alone) && self->waits_alone >= FZ_ALONE_FROM &&
	       fz_alone_look(self);
}

#endif
