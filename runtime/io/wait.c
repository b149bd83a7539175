/* SPDX-License-Identifier: MIT */
#include "runtime/io/wait.h"

#include <asm/errno.h>
#include <limits.h>
#include <poll.h>

#include "runtime/backend/backend.h"
#include "runtime/base/host.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/base/uapi.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

void fz_io_test_cancel(struct fz_fiber *self)
{
	if (FZ_UNLIKELY(fz_cancel_requested(self)))
		fz_host.test_cancel();
}

/* Has the fiber had its processor for longer than others should wait for it, and do others wait? */
static bool slice_is_over(const struct fz_fiber *self)
{
	enum { PARTS = 4 };		/* of FZ_POLL_PAUSE */
	/* relaxed: any value that was ever stored will do. */
	const uint64_t pause = atomic_load_explicit(&fz_sched.poll_cycles, memory_order_relaxed);
	/* A hint: outside the runtime the carrier may lose its processor at any time, and p may be NULL. */
	struct fz_processor *p = self->kind == FZ_KIND_FIBER ? self->carrier->processor : NULL;

	return p && pause && fz_cycles() - p->picked_at > pause / PARTS && fz_processor_has_work(p, 0);
}

bool fz_io_yield_sometimes(struct fz_fiber *self, bool often)
{
	/*
	 * The first IN_A_ROW of each OFTEN calls may yield.  Two, because sends are counted, too, and for a send
	 * `often` is never true: of two calls of a fiber that sends and receives by turns, one is a receive.
	 */
	enum { OFTEN = 32, IN_A_ROW = 2, EVERY = 64 };
	const unsigned n = ++self->call.reads;

	if (FZ_LIKELY(n % OFTEN >= IN_A_ROW) || (n % EVERY && !(often && slice_is_over(self))))
		return false;
	fz_sched_poll_and_yield(self);
	return true;
}

/* The most that likely_hits counts; and its value after misses, with which the next 16 receives make no attempt. */
enum { HITS_MOST = 8, AFTER_MISSES = -16 };

bool fz_io_is_likely(struct fz_fiber *self)
{
	if (FZ_LIKELY(!self->call.likely))
		return false;
	self->call.likely--;
	if (FZ_UNLIKELY(self->call.likely_hits < 0)) {
		self->call.likely_hits++;
		return false;
	}
	/* Requests of several fibers share one system call, which is worth more than an attempt unless they are large. */
	return self->call.bulk || !fz_sched_has_company(self);
}

bool fz_io_is_likely_alone(struct fz_fiber *self)
{
	if (self->call.likely)
		self->call.likely--;
	else if (self->call.likely_hits <= 0)
		return false;
	if (FZ_UNLIKELY(self->call.likely_hits < 0)) {
		self->call.likely_hits++;
		return false;
	}
	return true;
}

void fz_io_note_miss_alone(struct fz_fiber *self)
{
	self->call.likely_hits = AFTER_MISSES;
}

void fz_io_note_likely(struct fz_fiber *self, bool there)
{
	if (there)
		self->call.likely_hits += self->call.likely_hits < HITS_MOST;
	else if (--self->call.likely_hits < 0)
		self->call.likely_hits = AFTER_MISSES;
}

/* ---- requests ----------------------------------------------------------- */

static bool sends(const struct fz_op *op)
{
	switch (op->opcode) {
	case IORING_OP_POLL_ADD:
		return op->op_flags & POLLOUT;
	case IORING_OP_CONNECT:
		return true;
	default:
		return false;
	}
}

/*
 * Did the wait for *op rest on a hint that was wrong (runtime/io/hints.h)?  Returns -EAGAIN if the call
 * should not have waited; otherwise 0, and sets *deadline, and clears op->hinted, if the socket has a timeout.
 */
static int look_again(struct fz_op *op, fz_nsec *deadline)
{
	const int fd = fz_op_fd(op);
	const uint32_t wrong = fz_fdtab_found_wrong(op->hinted);

	if (wrong & FZ_FD_WAS_NONBLOCK)
		return -EAGAIN;
	if (wrong && *deadline == FZ_FOREVER)
		*deadline = fz_fdtab_deadline(fd, fz_fdtab_get(fd), sends(op));
	if (wrong)
		op->hinted = 0;
	return 0;
}

/* Handlers have run since fz_signal_mark().  restart: does SA_RESTART apply to the call? */
static int end_by_handler(const struct fz_fiber *self, bool restart)
{
	return restart && fz_signal_restarts(self) ? FZ_OP_ANEW : -EINTR;
}

/* Like fz_io_run(), but handlers that have run since the caller's fz_signal_mark() end the call, too. */
static int64_t run_more(struct fz_fiber *self, struct fz_op *op, fz_nsec deadline,
			int timeout_error, bool restart)
{
	for (;;) {
		int ret = fz_op_wait(self, op, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL);

		/* Without a handler, a signal interrupted a worker thread of the ring. */
		if (ret == -EINTR && fz_signal_handled(self))
			ret = FZ_OP_SIGNAL;
		switch (ret) {
		case FZ_OP_TIMEOUT:
			return timeout_error;
		case FZ_OP_SIGNAL:
			if (!fz_signal_handled(self)) {
				const fz_nsec before = deadline;

				if (op->hinted && look_again(op, &deadline))
					return timeout_error ? timeout_error : -EAGAIN;
				restart &= deadline == before;
				continue;
			}
			return end_by_handler(self, restart);
		case FZ_OP_CANCEL:
			/* relaxed: only this fiber writes it. */
			if (atomic_load_explicit(&self->cancel.deferred, memory_order_relaxed))
				return -ECANCELED;
			fz_host.test_cancel();
			continue;
		case -EINTR:
			continue;
		default:
			return ret;
		}
	}
}

int64_t fz_io_run(struct fz_fiber *self, struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart)
{
	fz_signal_mark(self);
	return run_more(self, op, deadline, timeout_error, restart);
}

int fz_io_wait_ready(struct fz_fiber *self, struct fz_pin *pin, short events,
		     fz_nsec deadline, bool restart)
{
	struct fz_op op = {
		.opcode = IORING_OP_POLL_ADD,
		.fd = pin->number,
		.pin = pin,
		.hinted = pin->hinted,
		.op_flags = (uint16_t)events,
		.turn = events == POLLIN || events == POLLOUT ? (uint64_t)events : 0,
	};
	struct pollfd p = { .events = events };
	int64_t ret = run_more(self, &op, deadline, 0, restart);

	/*
	 * The kernel answers EINVAL for a file with two wait queues (a FIFO opened for
	 * reading and writing, a terminal) if the event is gone before the kernel looks:
	 * it then starts its poll again, and finds its own entry in the second queue
	 * (io_uring/poll.c, 5.8 to 6.18 at least).
	 */
	if (ret != -EINVAL)
		return (int)ret;
	p.fd = fz_pin_fd(pin);
	/* ppoll would wait for nothing. */
	if (p.fd == FZ_PIN_CLOSED)
		return -EBADF;
	ret = fz_io_poll_announced(self, __NR_ppoll, &p, 1, deadline);
	if (ret == -EINTR)
		return end_by_handler(self, restart);
	/* A filter forbids ppoll. */
	if (ret < 0)
		return FZ_OP_FORBIDDEN;
	return ret ? p.revents : 0;
}

int fz_io_wait_more(struct fz_fiber *self, struct fz_pin *pin, short events,
		    fz_nsec deadline, bool restart, bool begun)
{
	int ret;

	if (begun)
		fz_cancel_defer(self);
	ret = fz_io_wait_ready(self, pin, events, deadline, restart);
	if (begun)
		fz_cancel_undefer(self);
	return ret;
}

/* ---- a child process ---------------------------------------------------- */

bool fz_io_can_await_child(void)
{
	return fz_backend_kind() == FZ_BACKEND_RING && fz_ring_knows(FZ_UAPI_OP_WAITID);
}

bool fz_io_await_child(struct fz_fiber *self, int type, int id, int options)
{
	const int keep = 0x1000000; /* WNOWAIT */
	struct fz_op op = {
		.opcode = FZ_UAPI_OP_WAITID,
		.fd = id,
		.len = (uint32_t)type,
		.file_index = (uint32_t)(options | keep),
	};
	int ret;

	ret = fz_op_wait(self, &op, FZ_FOREVER, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL);
	/*
	 * ECHILD may be wrong: if the kernel thread that submitted the request has ended, one of the
	 * kernel's worker threads looks for the child, among its own children
	 * (tests/programs/signal/signal_churn.c).
	 */
	return ret >= 0 || ret == -EINTR || ret == FZ_OP_SIGNAL || ret == FZ_OP_CANCEL;
}

/* ---- real calls --------------------------------------------------------- */

int64_t fz_io_make_measured(struct fz_fiber *self, const struct fz_io_call *c, unsigned flags,
			    struct fz_io_cost *cost)
{
	struct fz_real_call call = fz_call_begin(self, flags);
	/* After a handler, a call that may wait must not be made; a brief call is only one more attempt. */
	bool handled = (flags & (FZ_CALL_GOES_ON | FZ_CALL_BRIEF)) == FZ_CALL_GOES_ON &&
		       fz_call_handled(&call);
	const fz_nsec begin = cost->timed ? fz_now() : 0;
	int64_t ret;

	do {
		ret = FZ_UNLIKELY(handled) ? -EINTR : fz_io_make(c);
		handled = false;
	} while (fz_call_again(&call, ret));
	cost->time = cost->timed ? fz_now() - begin : 0;
	cost->lost = fz_call_end(&call, ret);
	return ret;
}

int64_t fz_io_make_announced(struct fz_fiber *self, const struct fz_io_call *c, unsigned flags)
{
	return fz_io_make_measured(self, c, flags, &(struct fz_io_cost){ .timed = false });
}

int64_t fz_io_make_limited(struct fz_fiber *self, struct fz_io_call *c, unsigned limit_at,
			   fz_nsec deadline)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_CANCELLABLE | FZ_CALL_GOES_ON);
	int64_t ret;

	do {
		c->args[limit_at] = (long)fz_signal_limit(self, deadline);
		ret = fz_io_make(c);
	} while (fz_call_again(&call, ret));
	/* A handler ends the call by setting the time limit to 0 (fz_signal_limit()). */
	if (ret == 0 && fz_call_handled(&call))
		ret = -EINTR;
	fz_call_end(&call, ret);
	return ret;
}

int64_t fz_io_look(const struct fz_fiber *self, const struct fz_io_call *c)
{
	int64_t ret;

	do
		ret = fz_io_make(c);
	while (ret == -EINTR && !fz_signal_handled(self));
	return ret;
}

int fz_io_poll_now(const struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n)
{
	const struct __kernel_timespec none = { 0, 0 };
	const struct fz_io_call c = {
		number, { (long)fds, (long)n, number == __NR_ppoll ? (long)&none : 0 }
	};

	return (int)fz_io_look(self, &c);
}

/* By poll(), whose time limit is in milliseconds, and cannot be set to 0 by a handler during the call. */
static int64_t poll_coarsely(struct fz_fiber *self, struct fz_io_call *c, fz_nsec deadline)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_CANCELLABLE | FZ_CALL_GOES_ON);
	int64_t ret;
	bool handled;

	do {
		fz_nsec now = fz_now(), left = deadline > now ? deadline - now : 0;

		left = left / FZ_MSEC + (left % FZ_MSEC != 0);
		c->args[2] = deadline == FZ_FOREVER ? -1 : left > INT_MAX ? INT_MAX : (long)left;
		handled = fz_call_handled(&call);
		if (handled)
			c->args[2] = 0;
		ret = fz_io_make(c);
		/* After a handler the call tells what is ready, but does not wait. */
		if (ret == 0 && handled)
			ret = -EINTR;
	} while (fz_call_again(&call, ret) || (ret == 0 && fz_now() < deadline));
	fz_call_end(&call, ret);
	return ret;
}

int fz_io_poll_announced(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
			 fz_nsec deadline)
{
	struct fz_io_call c = { __NR_ppoll, { (long)fds, (long)n } };
	int64_t ret = fz_io_make_limited(self, &c, 2, deadline);

	if (ret < 0 && ret != -EINTR && number != __NR_ppoll) {
		/* A filter forbids ppoll; or the arguments are wrong. */
		c.number = number;
		ret = poll_coarsely(self, &c, deadline);
	}
	return (int)ret;
}
