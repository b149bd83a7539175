/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_PIN_H
#define FZ_RUNTIME_IO_PIN_H

/*
 * runtime/io/pin.h - the open file of a call that waits and then tries again.
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

#include "runtime/sched/park.h"

/* On the stack of the call. */
struct fz_pin {
	int number;			/* the program's */
	int copy;			/* -1: none */
	/* While it waits: in the list of its bucket, whose lock guards the rest. */
	bool waiting;			/* by the fiber only */
	bool linked;
	bool ask_again;
	struct fz_ticket ticket;
	struct fz_pin *next, *prev;
};

#define FZ_PIN_INIT(fd) { .number = (fd), .copy = -1 }

/* For the declaration of one: released where its block is left. */
#define FZ_PINNED __attribute__((cleanup(fz_pin_release)))

/* What to name in the next system call. */
static inline int fz_pin_fd(const struct fz_pin *pin)
{
	return pin->copy < 0 ? pin->number : pin->copy;
}

/*
 * Around a wait of the calling fiber, in the runtime.  ask_again: closing ends the wait
 * (FZ_WHY_DONE), because its request may not have reached the kernel yet.  A copy is kept
 * until the release if keep, else closed.
 */
void fz_pin_begin(struct fz_pin *pin, struct fz_ticket ticket, bool ask_again);
void fz_pin_end(struct fz_pin *pin, bool keep);

/* Any thread. */
void fz_pin_release(struct fz_pin *pin);

/* Descriptor fd is about to be closed or replaced.  In the runtime. */
void fz_pin_closing(int fd);

/* Does a call wait with it?  Any thread; a hint. */
bool fz_pin_is_pinned(int fd);

/* The lowest number >= first that one waits with, or UINT_MAX.  In the runtime. */
unsigned fz_pin_next(unsigned first);

/* In a fork's child: nobody waits. */
void fz_pin_after_fork(void);

#endif
