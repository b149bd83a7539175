/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_WAIT_H
#define FZ_RUNTIME_IO_WAIT_H

/*
 * runtime/io/wait.h - how a call on a descriptor waits: for a request on the ring, for readiness,
 * or in the kernel by the real call; and what a signal, a cancellation and a deadline make of the
 * wait.  All functions: from a fiber, outside the runtime; may park.
 */

#include "runtime/io/op.h"
#include "runtime/io/real_call.h"

struct pollfd;

/*
 * If the thread has been cancelled, act on that and do not return.  Called before a call waits.
 */
void fz_io_test_cancel(struct fz_fiber *self);

/*
 * Call this before a read, and before a poll that does not wait.  At every 64th call, other fibers run
 * first: fibers whose requests the kernel completes only when it is entered would starve behind a fiber
 * whose calls never wait.  often: also at 2 calls of 32, if other fibers are runnable and this one has
 * run for 50 us, because a connection whose next request is always there keeps them waiting; not at more
 * calls, because each switch costs cold caches.  Returns true if other fibers may have run: what the
 * caller knows of a descriptor may be stale then.
 */
bool fz_io_yield_sometimes(struct fz_fiber *self, bool often);

/*
 * Data is likely to be there for the next n receives of this thread: poll has said so, or the last
 * receive got all that it had room for.
 */
static inline void fz_io_expect_data(struct fz_fiber *self, int n)
{
	enum { MOST = 3 };		/* what the field can hold */

	self->call.likely = (uint8_t)(n < MOST ? n : MOST) & MOST;
}

/* Is it worth an attempt to receive without waiting?  Not soon after attempts that failed. */
bool fz_io_is_likely(struct fz_fiber *self);
/*
 * fz_io_is_likely() for a fiber that is alone (runtime/sched/announce.h).  While attempts succeed, also true for more
 * receives than fz_io_expect_data() can count, as after an epoll_wait that reports many descriptors.
 */
bool fz_io_is_likely_alone(struct fz_fiber *self);
/* An attempt after fz_io_is_likely_alone() has failed: make none soon, since one saves little when it succeeds. */
void fz_io_note_miss_alone(struct fz_fiber *self);
void fz_io_note_likely(struct fz_fiber *self, bool there);

/*
 * Returns the value of the expression `call`, which is evaluated again for each FZ_OP_ANEW.  As natively, a call that a handler
 * with SA_RESTART has interrupted begins anew: it looks at its descriptor, at O_NONBLOCK and at the socket's timeout again.
 */
#define FZ_IO_CALL(call)			\
	({					\
		int64_t ret_;			\
						\
		do				\
			ret_ = (call);		\
		while (FZ_UNLIKELY(ret_ == FZ_OP_ANEW)); \
		ret_;				\
	})

/*
 * Run op, which is the whole call, until it is complete.  timeout_error is the result at the
 * deadline; restart tells whether handlers that all have SA_RESTART lead to FZ_OP_ANEW, and not to -EINTR.  Returns
 * the result, or FZ_OP_FORBIDDEN; -ECANCELED only between fz_cancel_defer() and fz_cancel_undefer().
 */
int64_t fz_io_run(struct fz_fiber *self, struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart);

/*
 * Wait until the pinned descriptor is ready for events (POLL*).  Returns the events that are ready,
 * which may include POLLERR and POLLHUP; 0 at the deadline; -EINTR after a handler (with restart, FZ_OP_ANEW
 * after handlers with SA_RESTART); or FZ_OP_FORBIDDEN.  Then try again with fz_pin_fd(): the number may
 * have changed, and the descriptor may not be ready any more.  The call must have begun with
 * fz_signal_mark(): a handler that ran between two attempts ends it, too.
 */
int fz_io_wait_ready(struct fz_fiber *self, struct fz_pin *pin, short events,
		     fz_nsec deadline, bool restart);

/*
 * fz_io_wait_ready() in a transfer.  begun: a part is done and its count must be returned; so a
 * cancellation ends the wait with -ECANCELED, and the thread's next call acts on the cancellation.
 */
int fz_io_wait_more(struct fz_fiber *self, struct fz_pin *pin, short events,
		    fz_nsec deadline, bool restart, bool begun);

/* The number and arguments of a system call. */
struct fz_io_call {
	long number, args[6];
};

static inline int64_t fz_io_make(const struct fz_io_call *c)
{
	return fz_syscall6(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
			   c->args[5]);
}

/*
 * Make a real call that may wait, from fz_call_begin() to fz_call_end().  flags: FZ_CALL_*
 * (runtime/io/real_call.h).
 */
int64_t fz_io_make_announced(struct fz_fiber *self, const struct fz_io_call *c, unsigned flags);

/* How long a real call took; the wait for a processor after it does not count. */
struct fz_io_cost {
	bool timed;		/* take the time; set by the caller */
	fz_nsec time;
	bool lost;		/* the call was not brief: the carrier has lost its processor */
};

/* fz_io_make_announced() that reports in *cost. */
int64_t fz_io_make_measured(struct fz_fiber *self, const struct fz_io_call *c, unsigned flags,
			    struct fz_io_cost *cost);

/*
 * Make the call that the program has made, announced, with descriptor fd as its first argument.  For
 * programs whose filters forbid the calls that stand in for it.
 */
static inline int64_t fz_io_make_own(struct fz_fiber *self, const struct fz_io_call *own, int fd,
				     bool restart)
{
	struct fz_io_call c = *own;

	c.args[0] = fd;
	return fz_io_make_announced(self, &c, FZ_CALL_CANCELLABLE |
						      (restart ? FZ_CALL_RESTARTS : 0));
}

/*
 * Make a cancellable call with a time limit, which is argument number limit_at.  A handler that
 * has run since fz_signal_mark() ends the call with -EINTR.
 */
int64_t fz_io_make_limited(struct fz_fiber *self, struct fz_io_call *c, unsigned limit_at,
			   fz_nsec deadline);

/*
 * Make a call with a time limit of 0, after fz_signal_mark().  The kernel may answer EINTR even then.
 * If no handler of the program has run (the signal was a nudge, for example), the call is made again.
 */
int64_t fz_io_look(const struct fz_fiber *self, const struct fz_io_call *c);

/*
 * Make the real call of poll, without waiting, or announced and with a deadline.  number: of poll or
 * ppoll, whichever the program has called.
 */
int fz_io_poll_now(const struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n);
int fz_io_poll_announced(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
			 fz_nsec deadline);

#endif
