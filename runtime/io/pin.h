/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_PIN_H
#define FZ_RUNTIME_IO_PIN_H

/*
 * runtime/io/pin.h - keep the open file of a call that waits and then tries again.
 *
 * Natively a call in progress keeps its open file, whatever happens to the descriptor's number.
 * So does a request on the ring.  But a call that waits for readiness goes on with another system
 * call, which takes a number.  If another thread closes or replaces the descriptor meanwhile, the
 * pin gives the call a private copy first.
 *
 * When a signal or a cancellation ends the wait, the pin ends, too, before handlers run: a handler may
 * leave the call by siglongjmp.  A call that is restarted looks up the number again, as it does natively.
 */

#include "runtime/sched/park.h"

/* One pinned descriptor.  On the stack of the call. */
struct fz_pin {
	int number;			/* the descriptor that the program passed */
	/* private copy, -1, or FZ_PIN_CLOSED; written by fz_pin_closing(), fz_pin_adopt() and fz_pin_release() */
	int copy;
	uint32_t hinted;		/* fz_op.hinted of waits until the descriptor is ready; of the fiber only */
	/*
	 * While the call waits, the pin is in the list of its bucket.  The lock of the bucket guards all
	 * fields but `waiting` and `hinted`.
	 */
	bool waiting;			/* written by the fiber only */
	bool linked;
	bool ask_again;
	struct fz_ticket ticket;
	struct fz_pin *next, *prev;
};

/* No number was free for a copy.  The call goes on with this number, which is never open: EBADF. */
#define FZ_PIN_CLOSED (-2)

#define FZ_PIN_INIT(fd) { .number = (fd), .copy = -1 }

/* Attribute of a struct fz_pin variable: released when its block is left. */
#define FZ_PINNED __attribute__((cleanup(fz_pin_release)))

/* Returns the descriptor for the next system call. */
static inline int fz_pin_fd(const struct fz_pin *pin)
{
	return pin->copy == -1 ? pin->number : pin->copy;
}

/*
 * Around a wait of the calling fiber, in the runtime.  ask_again: closing the descriptor ends the
 * wait (FZ_WHY_DONE), because its request may not have reached the kernel yet.  why: what has ended the
 * wait.  The copy stays open until fz_pin_release(); but fz_pin_end() closes it if a handler is about
 * to run or the thread is cancelled, because the call may not return then.
 */
void fz_pin_begin(struct fz_pin *pin, struct fz_ticket ticket, bool ask_again);
/* May close the copy, which may last: the fiber may have another processor then. */
void fz_pin_end(struct fz_pin *pin, enum fz_why why);

/* The call goes on with this copy, from fz_kept_fd_make().  Not while it waits. */
static inline void fz_pin_adopt(struct fz_pin *pin, int copy)
{
	pin->copy = copy;
}

/*
 * Give the pin a private copy before a real call that may wait.  When a request of the same kernel
 * thread completes, the kernel restarts such a call and looks up the number again; the number may
 * stand for another file by then.  From a fiber, outside the runtime.
 */
void fz_pin_hold(struct fz_fiber *self, struct fz_pin *pin);

/* Close the copy, if there is one.  Any thread; outside the runtime, as it may last. */
void fz_pin_release(struct fz_pin *pin);

/*
 * fz_kept_fd_drop(), unless copy is -1, by a call that may have the file last: the close may last (SO_LINGER).  In the
 * runtime, with no lock held.
 */
void fz_pin_close_copy(struct fz_fiber *self, int copy);

/*
 * Descriptor fd is about to be closed or replaced: give each waiting call a copy.  In the runtime.
 */
void fz_pin_closing(int fd);

/* May a waiting call have fd pinned?  Any thread; a hint. */
bool fz_pin_is_pinned(int fd);

/* Returns the lowest pinned number >= first, or UINT_MAX.  In the runtime. */
unsigned fz_pin_next(unsigned first);

/* In a fork's child: forget all pins, since the waiting calls do not exist here. */
void fz_pin_after_fork(void);

#endif
