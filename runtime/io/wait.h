/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_WAIT_H
#define FZ_RUNTIME_IO_WAIT_H

/*
 * runtime/io/wait.h - how a call on a descriptor waits: for a request on the ring, for
 * readiness, or in the kernel by the real call.  It decides what a signal, a cancellation
 * and a deadline make of the wait.  All: from a fiber, outside the runtime; may park.
 */

#include "runtime/io/op.h"
#include "runtime/io/real_call.h"

struct pollfd;

/* Cancellation requested before the call waits for anything: act on it. */
void fz_io_test_cancel(struct fz_fiber *self);

/*
 * Before a read that may find what others have waited for longer, whose requests the
 * kernel completes only when it is asked: now and then it is, and they go first.
 */
void fz_io_take_turns(struct fz_fiber *self);

/*
 * Run op to its end.  timeout_error is the answer at the deadline; restart tells
 * whether the call goes on after handlers that all have SA_RESTART.  -ECANCELED
 * between fz_cancel_defer and undefer only.
 */
int64_t fz_io_run(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart);

/*
 * Wait until one descriptor is ready for events (POLL*).  Returns 1, or 0 at the
 * deadline, or -EINTR; with restart, not after handlers with SA_RESTART.  Then ask again,
 * by fz_pin_fd(): it may not be ready, or have another number.
 */
int fz_io_wait_ready(struct fz_fiber *self, struct fz_pin *pin, short events,
		     fz_nsec deadline, bool restart);

/*
 * fz_io_wait_ready() in a transfer; begun: part of it is done and must be returned, so that a
 * cancellation ends the wait with -ECANCELED, and is left to the next call.
 */
int fz_io_wait_more(struct fz_fiber *self, struct fz_pin *pin, short events,
		    fz_nsec deadline, bool restart, bool begun);

/* How many descriptors fz_io_wait_any() takes; beyond, the kernel's own poll costs less. */
enum { FZ_IO_MAX_POLLS = 64 };

/*
 * Wait until one of n descriptors, which may be none, is ready, for poll and select.  Returns 1,
 * 0 at the deadline, -EINTR after a handler, or -EINVAL: only the real call can wait for one
 * of them.
 */
int fz_io_wait_any(struct fz_fiber *self, const struct pollfd *fds, unsigned n, fz_nsec deadline);

/* A system call as such: its number and arguments. */
struct fz_io_call {
	long number, args[6];
};

static inline int64_t fz_io_make(const struct fz_io_call *c)
{
	return fz_syscall6(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
			   c->args[5]);
}

/* Make a call that may wait.  flags: FZ_CALL_* (runtime/io/real_call.h). */
int64_t fz_io_make_announced(struct fz_fiber *self, const struct fz_io_call *c, unsigned flags);

/*
 * Make a cancellable call with a time limit, which is its argument number limit_at.  A handler
 * that has run since fz_signal_none_run() ends the call with -EINTR.
 */
int64_t fz_io_make_limited(struct fz_fiber *self, struct fz_io_call *c, unsigned limit_at,
			   fz_nsec deadline, uint32_t none_run);

/* The real call of poll: without waiting, and limited. */
int fz_io_poll_now(struct pollfd *fds, uint64_t n);
int fz_io_poll_announced(struct fz_fiber *self, struct pollfd *fds, uint64_t n,
			 fz_nsec deadline, uint32_t none_run);

#endif
