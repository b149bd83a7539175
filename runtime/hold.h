/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_HOLD_H
#define FZ_RUNTIME_HOLD_H

/*
 * runtime/hold.h - the open file of a call that waits and then tries again.
 *
 * Natively a call in progress keeps the open file, whatever becomes of its number.  So does
 * a request on the ring; but what waits for readiness goes on with another system call,
 * which takes a number.  If another thread closes or replaces that meanwhile, the call gets
 * a private copy first.
 *
 * A signal, timeout or cancellation that ends the wait ends that, too, before handlers run,
 * which may leave the call by siglongjmp: natively a call that is restarted looks at the
 * number again.
 */

#include "runtime/park.h"

/* On the stack of the call. */
struct fz_hold {
	int number;			/* the program's */
	int copy;			/* -1: none */
	/* While it waits: in the list of its bucket, whose lock guards the rest. */
	bool waiting;			/* by the fiber only */
	bool linked;
	bool ask_again;
	struct fz_ticket ticket;
	struct fz_hold *next, *prev;
};

#define FZ_HOLD_INIT(fd) { .number = (fd), .copy = -1 }

/* For the declaration of one: released where its block is left. */
#define FZ_HELD __attribute__((cleanup(fz_hold_release)))

/* What to name in the next system call. */
static inline int fz_hold_fd(const struct fz_hold *hold)
{
	return hold->copy < 0 ? hold->number : hold->copy;
}

/*
 * Around a wait of the calling fiber, in the runtime.  ask_again: closing ends the wait
 * (FZ_WHY_DONE), because its request may not have reached the kernel yet.  A copy is kept
 * until the release if keep, else closed.
 */
void fz_hold_begin(struct fz_hold *hold, struct fz_ticket ticket, bool ask_again);
void fz_hold_end(struct fz_hold *hold, bool keep);

/* Any thread. */
void fz_hold_release(struct fz_hold *hold);

/* Descriptor fd is about to be closed or replaced.  In the runtime. */
void fz_hold_closing(int fd);

/* Does a call wait with it?  Any thread; a hint. */
bool fz_hold_is_held(int fd);

/* The lowest number >= first that one waits with, or UINT_MAX.  In the runtime. */
unsigned fz_hold_next(unsigned first);

/* In a fork's child: nobody waits. */
void fz_hold_after_fork(void);

#endif
