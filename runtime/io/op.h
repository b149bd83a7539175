/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_OP_H
#define FZ_RUNTIME_IO_OP_H

/*
 * runtime/io/op.h - one request on the ring, for which the calling fiber waits; and what happens to
 * waiting calls when the program closes their descriptor.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/io/pin.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/*
 * The fields of a submission entry (sqe) that our requests use; zero means unused.  On the stack
 * of the call.
 */
struct fz_op {
	uint8_t opcode;			/* IORING_OP_* */
	int fd;
	uint64_t off;			/* or addr2 */
	uint64_t addr, addr3;
	uint32_t len;
	uint32_t op_flags;		/* msg_flags, rw_flags, poll32_events ... */
	uint32_t file_index;		/* for WAITID: its options */
	bool prompt;			/* for devices, which would be idle while requests gather */
	/*
	 * fz_fdtab_wait(): the call waits because of what the library remembers of the descriptor, which may be stale.
	 * The monitor checks such waits (runtime/io/hints.h).
	 */
	uint32_t hinted;
	/*
	 * Not 0: the request may take turns with others that have the same descriptor and the same
	 * value here (runtime/io/turn.h).  POLLIN or POLLOUT; in the upper 32 bits, where SO_RCVLOWAT
	 * makes it matter, the number of bytes that are asked for.
	 */
	uint64_t turn;
	/*
	 * If set, the request names this pin's number or copy instead of fd.  The copy stays when
	 * the request is complete, for the rest of the call.
	 */
	struct fz_pin *pin;
	/*
	 * Used if pin is NULL.  If the descriptor is closed before the request is made, this pin gets the
	 * private copy, and keeps it for the rest of the call, which may go on by a system call (fz_op_fd).
	 */
	struct fz_pin *spare;
};

/*
 * Is the request submitted at once?  Otherwise with others, when the processor has no fiber left to run; but if
 * CPU-bound fibers ran first, that would be late.
 */
static inline bool fz_op_is_prompt(const struct fz_op *op, struct fz_processor *p)
{
	return op->prompt || fz_runq_has_cpu_bound(&p->runq) || fz_runq_length(&fz_sched.global);
}

/* Returns the pin that holds the call's open file, or own if the request has none. */
static inline struct fz_pin *fz_op_pin(const struct fz_op *op, struct fz_pin *own)
{
	return op->pin ? op->pin : op->spare ? op->spare : own;
}

/* Returns the descriptor that the call goes on with. */
static inline int fz_op_fd(const struct fz_op *op)
{
	const struct fz_pin *pin = fz_op_pin(op, NULL);

	return pin ? fz_pin_fd(pin) : op->fd;
}

_Static_assert(offsetof(struct fz_op, opcode) == offsetof(struct fz_asked, opcode) &&
	       offsetof(struct fz_op, fd) == offsetof(struct fz_asked, fd),
	       "what a wait is for is shown without knowledge of requests");

/* Results besides the kernel's; no system call returns these values. */
enum {
	FZ_OP_TIMEOUT = -1000,		/* the deadline passed */
	/*
	 * A handler has run.  If fz_signal_handled() is false and `hinted` is not 0, a hint was stale
	 * instead.  The request had no effect.
	 */
	FZ_OP_SIGNAL = -1001,
	FZ_OP_CANCEL = -1002,		/* the thread was cancelled; the request had no effect */
	/*
	 * A filter forbids the request, or the system call that stands in for it.  There was no effect:
	 * make the call that the program has made.
	 */
	FZ_OP_FORBIDDEN = -1003,
	/* Not of fz_op_wait(): handlers, all with SA_RESTART, have ended a call that has had no effect (FZ_IO_CALL). */
	FZ_OP_ANEW = -1004,
};

/* Turn the reason for the end of a wait into 0 or FZ_OP_*. */
static inline int fz_op_outcome(enum fz_why why)
{
	switch (why) {
	case FZ_WHY_TIMEOUT: return FZ_OP_TIMEOUT;
	case FZ_WHY_SIGNAL: return FZ_OP_SIGNAL;
	case FZ_WHY_CANCEL: return FZ_OP_CANCEL;
	default: return 0;
	}
}

/*
 * Submit a request and park until it is complete.  flags as in fz_wait_arm(): what else may end
 * the wait; with FZ_WAIT_SIGNAL, fz_signal_mark() has been called.  The request is over when this
 * returns, so its buffers belong to the caller again.  If the kernel had done something before the
 * request could be cancelled, the result is what the kernel did, not why the request was cancelled.
 * From a fiber, outside the runtime.  Handlers have run when it returns.
 */
int fz_op_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
	       unsigned flags);

/*
 * Poll n descriptors (n >= 1) and park until the first is ready.  flags as in fz_op_wait().
 * Returns 1, FZ_OP_*, or -EINVAL: the ring cannot wait for one of the descriptors (see
 * fz_io_wait_ready).
 */
struct pollfd;
int fz_op_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
	       fz_nsec deadline, unsigned flags);

/*
 * Call it after each attempt that was refused with EAGAIN; *count is 0 at first.  Returns true if
 * fd is ready for events but refuses this call again and again, so that waiting for readiness
 * would spin: a datagram to a full Unix socket that is not connected; receiving where reception
 * has been shut down.  Then only the real call can wait, or report an error.
 */
bool fz_op_is_refused(int fd, uint32_t events, unsigned *count);

/*
 * Before descriptor fd is closed: submit queued requests that name it, let calls that wait for its
 * readiness go on with a copy, and take it out of our epoll instances.  Any thread outside the
 * runtime.
 */
void fz_op_flush_fd(struct fz_fiber *self, int fd);

/*
 * Take fd out of our epoll instances before it is closed.  A kernel thread in epoll_wait briefly holds a reference to
 * each open file that it looks at, even without an event.  If that reference is the last one, the file stays open until
 * the kernel thread returns to the program (tests/programs: io/io_fifo.c, process/fork_closing.c).  Any thread.
 */
void fz_op_unwatch(int fd);

/*
 * After descriptor fd is closed: wake the calls that began to wait for it after fz_op_flush_fd(),
 * so that they notice the close.  Any thread outside the runtime.
 */
void fz_op_closed(struct fz_fiber *self, int fd);

/*
 * fz_op_flush_fd() and fz_op_closed() for all descriptors from first to last, which may be
 * UINT_MAX.
 */
void fz_op_flush_range(struct fz_fiber *self, unsigned first, unsigned last);
void fz_op_closed_range(struct fz_fiber *self, unsigned first, unsigned last);

/*
 * Must the call not wait any more, because a handler has run since the call began (fz_signal_mark)?
 * In the runtime, where no handler can run.
 */
static inline bool fz_op_is_ended(const struct fz_fiber *self, unsigned flags)
{
	return flags & FZ_WAIT_SIGNAL && fz_signal_handled(self);
}

/* fz_op_wait() and fz_op_poll() when the backend is epoll (op_ready.c).  For op.c only. */
int fz_op_ready_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		     unsigned flags);
int fz_op_ready_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
		     fz_nsec deadline, unsigned flags);

#endif
