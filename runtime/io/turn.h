/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_TURN_H
#define FZ_RUNTIME_IO_TURN_H

/*
 * runtime/io/turn.h - many fibers that wait for one descriptor take turns: one of them has a request
 * on the ring, the others wait in a queue, in the order of their arrival.
 *
 * The kernel wakes all requests that wait for a descriptor when one of them can go on: with 1,000
 * readers of a pipe, one byte costs 1,000 wake-ups.  (Only IORING_OP_ACCEPT waits exclusively.)
 *
 * The fiber that has the turn waits exactly as if it were alone, so nothing here decides whether the
 * descriptor is ready.  When the request is over, the turn passes to the next fiber, however the
 * request ends.  If something else has already ended the wait of that fiber, the turn passes on at
 * once, so that no event gets lost.  All fibers in a queue wait for one kind of event, and any of them
 * can take an event that is there.  So a call that may wait in spite of data (MSG_PEEK with an offset,
 * MSG_WAITALL) is in no queue.
 *
 *	fz_turn_begin(...)	false: park
 *	make a request whose completion calls fz_turn_end()
 *	fz_turn_end(...)	in any case, before handlers run
 *
 * When the descriptor is closed, the queue goes on with a private copy: natively, a call in progress
 * keeps its open file.  A call that comes later, and finds another file, begins another queue.
 */

#include "runtime/base/base.h"
#include "runtime/base/ticket.h"

/* A call in a queue.  On the stack of the call; guarded by the lock of the queue's bucket. */
struct fz_turn {
	int fd;				/* as the program passed it */
	uint64_t what;			/* the event that the call waits for: fz_op.turn */
	bool linked;
	bool closed;			/* the descriptor is closed, and no copy could be made */
	struct fz_ticket ticket;
	struct fz_turn *next, *prev;	/* circular: the call that has the turn comes first */
	/* Only of the call that has the turn: */
	bool has;
	int copy;			/* private copy that the queue goes on with, or -1 */
	int left;			/* that copy, if the queue is empty after fz_turn_end(), or -1 */
	struct fz_turn *other;		/* the call that has the turn in the bucket's next queue */
};

/* How many queues there are.  Any thread; a hint. */
extern _Atomic uint32_t fz_turn_queues FZ_HIDDEN;

/* May there be a queue for fd?  Any thread; a hint. */
bool fz_turn_any(int fd);

/*
 * Enter the queue of calls that wait for `what` of fd.  Returns true if the caller has the turn now.  Returns
 * false if the caller must park: a wake-up by the ticket with FZ_WHY_DONE gives it the turn.  In the runtime.
 */
bool fz_turn_begin(struct fz_turn *turn, int fd, uint64_t what, struct fz_ticket ticket);

/*
 * Call this when the caller has the turn, or its wait for the turn has ended with FZ_WHY_DONE.  Returns -1 if the
 * call goes on with the program's number.  If the descriptor has been closed, returns a copy of the queue's private
 * copy, which the caller closes by fz_kept_fd_drop(), or -EBADF if no number is free.  In the runtime.
 */
int fz_turn_copy(const struct fz_turn *turn);

/*
 * Leave the queue; a call that has the turn passes the turn on.  Called by the fiber itself, or by the thread that
 * completes the request of the call that has the turn; the second call has no effect.  If turn->left is not -1 then, the
 * fiber itself closes it, which may last.  In the runtime.
 */
void fz_turn_end(struct fz_turn *turn);

/* Descriptor fd is about to be closed or replaced: its queues go on with a copy.  In the runtime. */
void fz_turn_closing(int fd);

/*
 * Descriptor fd has been closed or replaced: a call that has entered a queue for fd since fz_turn_closing()
 * goes on alone.  In the runtime.
 */
void fz_turn_closed(int fd);

/* Returns the lowest number >= first with a queue, or UINT_MAX.  In the runtime. */
unsigned fz_turn_next(unsigned first);

/* In a fork's child: forget all queues, since the waiting calls do not exist here. */
void fz_turn_after_fork(void);

#endif
