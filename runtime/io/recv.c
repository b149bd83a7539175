/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/recv.c - receive from sockets.  recv and recvmsg (and read and readv, which become recv
 * and recvmsg) are requests on the ring, after an attempt if data is likely to be there.  recvfrom
 * with an address and recvmmsg try without waiting, then wait for readiness.
 */
#include "runtime/io/io_internal.h"

#include <asm/socket.h>
#include <poll.h>

#include "runtime/backend/filter.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/follow.h"
#include "runtime/io/socket.h"
#include "runtime/sched/announce.h"

/* With these flags, readiness does not tell whether a call waits. */
enum { WAITS_IN_SPITE = FZ_MSG_PEEK | FZ_MSG_WAITALL | FZ_MSG_OOB };

/*
 * MSG_PEEK with MSG_WAITALL by the real call: the ring would repeat the peek, and append the same
 * bytes to those that it has already stored.
 */
static int64_t peek_whole(struct fz_fiber *self, const struct fz_io_call *c, uint32_t wanted,
			  bool restart)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_CANCELLABLE |
							       (restart ? FZ_CALL_RESTARTS : 0));
	int64_t ret, seen = 0;
	bool partial;

	do {
		ret = fz_io_make(c);
		/*
		 * Without a handler, a short count comes from the completion of a request of this
		 * kernel thread.
		 */
		partial = ret > seen && ret < (int64_t)wanted && !fz_call_handled(&call);
		seen = ret > seen ? ret : seen;
	} while (fz_call_again(&call, partial ? -EINTR : ret));
	fz_call_end(&call, ret);
	return seen ? seen : ret;
}

/*
 * A filter forbids the request: make the program's call, which must gather all of MSG_WAITALL,
 * whatever interrupts it.
 */
static int64_t receive_forbidden(struct fz_fiber *self, const struct fz_op *op,
				 const struct fz_io_call *own, bool restart)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)op->addr, .iov_len = op->len };
	struct fz_io_cursor c = { .own = own, .iov = &iov, .count = 1 };

	fz_pin_hold(self, op->spare);
	if (op->opcode == IORING_OP_RECV && op->op_flags & FZ_MSG_WAITALL)
		return fz_io_make_whole(self, fz_op_fd(op), &c, false);
	return fz_io_make_own(self, own, fz_op_fd(op), restart);
}

/* Receive what is there.  Not for MSG_WAITALL.  Returns -EAGAIN also if a filter forbids to try. */
static int64_t receive_now(struct fz_fiber *self, const struct fz_op *op)
{
	const bool message = op->opcode == IORING_OP_RECVMSG;
	const long number = message ? __NR_recvmsg : __NR_recvfrom;
	const long flags = (long)(op->op_flags | FZ_MSG_DONTWAIT);
	const struct fz_io_call call = {
		number, { op->fd, (long)op->addr, message ? flags : (long)op->len, flags }
	};
	/* recvmsg does not look at the fourth argument. */
	int64_t ret = fz_io_make(&call);

	/* A filter forbids this call, which stands in for the program's call. */
	if (FZ_UNLIKELY(fz_sys_is_denied(ret, number, 0, 0, 0, 0, 0)))
		ret = -EAGAIN;
	fz_io_note_likely(self, ret != -EAGAIN);
	return ret;
}

/*
 * If data is likely to be there, receive it at once, without a request: that is one system call, and
 * no switch to another fiber and back.  Also try if the socket may have a timeout: a request would
 * need one more system call, to ask for the timeout.  Returns -EAGAIN if the request has to be made.
 */
static int64_t receive_likely(struct fz_fiber *self, const struct fz_op *op, uint32_t info)
{
	if (op->op_flags & FZ_MSG_WAITALL)
		return -EAGAIN;
	/* On epoll, a call is tried first anyway. */
	if (!(info & FZ_FD_RECV_TIMEOUT) &&
	    (!fz_io_is_likely(self) || fz_backend_kind() != FZ_BACKEND_RING))
		return -EAGAIN;
	return receive_now(self, op);
}

/*
 * The fiber is alone, so it waits by the call that the program has made.  Try first if data is likely
 * to be there: an attempt needs no announcement, and costs less than one.
 */
static int64_t receive_alone(struct fz_fiber *self, const struct fz_op *op,
			     const struct fz_io_call *own)
{
	int64_t ret;

	fz_io_yield_sometimes(self, false);
	if (fz_io_is_likely_alone(self)) {
		ret = receive_now(self, op);
		if (ret != -EAGAIN)
			return ret;
		fz_io_note_miss_alone(self);
	}
	return fz_io_make_announced(self, own, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE);
}

/*
 * Wait by a request.  info: the descriptor's hints.  The request does not set RECVSEND_POLL_FIRST, which
 * makes a request 10 % more expensive (measured).
 */
static int64_t receive_by_request(struct fz_fiber *self, struct fz_op *op,
				  const struct fz_io_call *own, uint32_t info)
{
	FZ_PINNED struct fz_pin spare = FZ_PIN_INIT(op->fd);
	const fz_nsec deadline = fz_fdtab_deadline(op->fd, info, false);
	int64_t ret = FZ_OP_FORBIDDEN;
	int stream = 1;

	op->spare = &spare;
	/* Only streams honour MSG_WAITALL; the ring would also join records of SOCK_SEQPACKET. */
	if (op->op_flags & FZ_MSG_WAITALL)
		stream = fz_sys_is_stream(op->fd);
	if (!stream)
		op->op_flags &= ~(uint32_t)FZ_MSG_WAITALL;
	if (FZ_UNLIKELY(deadline == FZ_FD_ASK_KERNEL))
		return fz_io_make_announced(self, own, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE);
	if (op->op_flags & FZ_MSG_WAITALL && op->op_flags & FZ_MSG_PEEK)
		return peek_whole(self, own, op->len, deadline == FZ_FOREVER);
	/* With SO_RCVLOWAT, how much data is enough on a stream depends on the size asked for. */
	if (!(op->op_flags & WAITS_IN_SPITE) && op->opcode == IORING_OP_RECV && op->len)
		op->turn = (uint64_t)op->len << 32 | POLLIN;
	else if (!(op->op_flags & WAITS_IN_SPITE) && !(info & FZ_FD_STREAM))
		op->turn = POLLIN;
	/* With a timeout the call is not restarted after a handler, SA_RESTART or not: signal(7). */
	if (stream >= 0)
		ret = fz_io_run(self, op, deadline, -EAGAIN, deadline == FZ_FOREVER);
	return ret == FZ_OP_FORBIDDEN ?
		       receive_forbidden(self, op, own, deadline == FZ_FOREVER) : ret;
}

/*
 * A receive may find data each time and never wait.  So let other fibers run sometimes, and move near the peer
 * (fz_follow_peer) sometimes.  Returns true if other fibers may have run.
 */
static bool share(struct fz_fiber *self, int fd, uint32_t info, bool may_wait)
{
	/* For Unix sockets the kernel does not tell the peer's CPU; there, yielding often costs more than it gains. */
	const bool tells = !(info & (FZ_FD_UNIX | FZ_FD_UNASKED));

	if (!tells && !may_wait)
		return false;
	if (fz_io_yield_sometimes(self, tells))
		return true;
	/* A filter of the program's may end the process for an unknown getsockopt().  relaxed: as in fz_filter_forbids(). */
	if (FZ_UNLIKELY(self->call.reads % FZ_FOLLOW_EVERY <= 1) && tells &&
	    !atomic_load_explicit(&fz_filter_is_programs, memory_order_relaxed))
		return fz_follow_peer(self, fd);
	return false;
}

/* May SO_RCVLOWAT be set, and does it make calls wait?  info: the descriptor's hints. */
static bool has_low_water(uint32_t info)
{
	return FZ_UNLIKELY(info & FZ_FD_LOW_WATER) && info & FZ_FD_STREAM;
}

/*
 * With SO_RCVLOWAT, the program's call waits until that many bytes are there, or as many as it asks for.  An
 * attempt, or a request, would return with less.  So gather that many by MSG_WAITALL, and then take what else is there.
 */
static int64_t receive_enough(struct fz_fiber *self, struct fz_op *op, const struct fz_io_call *own,
			      uint32_t info, uint32_t least)
{
	const uint32_t name = fz_fdtab_name(op->fd), n = op->len, flags = op->op_flags;
	int64_t ret, more;

	/* Only the kernel gathers across vectors.  The completion of a request of this kernel thread may end the call early. */
	if (op->opcode == IORING_OP_RECVMSG)
		return fz_io_make_own(self, own, op->fd, !(info & FZ_FD_RECV_TIMEOUT));
	op->len = n < least ? n : least;
	op->op_flags |= FZ_MSG_WAITALL;
	ret = receive_by_request(self, op, own, info);
	/* The number may have got another file meanwhile. */
	if (ret != (int64_t)op->len || ret == (int64_t)n || flags & FZ_MSG_PEEK ||
	    name != fz_fdtab_name(op->fd))
		return ret;
	more = fz_syscall6(__NR_recvfrom, op->fd, (long)op->addr + ret, (long)n - ret,
			   (long)(flags | FZ_MSG_DONTWAIT), 0, 0);
	return more > 0 ? ret + more : ret;
}

/* own: the call that the program has made. */
static int64_t receive(struct fz_fiber *self, struct fz_op *op, const struct fz_io_call *own)
{
	uint32_t info;
	int wait, least = 1;
	int64_t ret;

again:
	wait = fz_io_could_wait(self, own->number, op->fd, (int)op->op_flags, &info);
	/* An announced call that is interrupted begins anew: with a timeout it would last too long. */
	if (wait > 0 && fz_is_alone(self) && !(info & (FZ_FD_RECV_TIMEOUT | FZ_FD_LOW_WATER)) &&
	    !(op->op_flags & FZ_MSG_WAITALL))
		return receive_alone(self, op, own);
	if (wait > 0)
		wait = fz_io_is_blocking(op->fd, info);
	if (wait >= 0 && FZ_UNLIKELY(share(self, op->fd, info, wait > 0)))
		goto again;
	if (wait <= 0)
		return fz_io_make_at_once(self, wait, own);
	if (has_low_water(info) && !(op->op_flags & (FZ_MSG_WAITALL | FZ_MSG_OOB)))
		least = fz_sys_socket_option(op->fd, SO_RCVLOWAT);
	if (FZ_UNLIKELY(least > 1))
		return receive_enough(self, op, own, info, (uint32_t)least);
	ret = receive_likely(self, op, info);
	return ret == -EAGAIN ? receive_by_request(self, op, own, info) : ret;
}

static int64_t receive_buffer(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
			      const struct fz_io_call *own)
{
	struct fz_op op = {
		.opcode = IORING_OP_RECV,
		.hinted = true,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.len = fz_io_clamp(n),
		.op_flags = (uint32_t)flags,
	};
	const int64_t ret = receive(self, &op, own);

	self->call.bulk = n > 1 && ret == (int64_t)op.len;
	/* A full buffer: more data may be there.  MSG_PEEK: this data is still there. */
	if (self->call.bulk || (ret > 0 && flags & FZ_MSG_PEEK))
		fz_io_expect_data(self, 1);
	return ret;
}

int64_t fz_io_recv(struct fz_fiber *self, int fd, void *buf, size_t n, int flags)
{
	const struct fz_io_call own = { __NR_recvfrom, { fd, (long)buf, (long)n, flags } };

	return receive_buffer(self, fd, buf, n, flags, &own);
}

int64_t fz_io_socket_read(struct fz_fiber *self, int fd, void *buf, size_t n)
{
	const struct fz_io_call own = { __NR_read, { fd, (long)buf, (long)n } };

	return receive_buffer(self, fd, buf, n, 0, &own);
}

static int64_t receive_message(struct fz_fiber *self, int fd, struct fz_user_msghdr *msg,
			       int flags, const struct fz_io_call *own)
{
	struct fz_op op = {
		.opcode = IORING_OP_RECVMSG,
		.hinted = true,
		.fd = fd,
		.addr = (uintptr_t)msg,
		.len = 1,
		.op_flags = (uint32_t)flags,
	};

	return receive(self, &op, own);
}

int64_t fz_io_recvmsg(struct fz_fiber *self, int fd, struct msghdr *msg, int flags)
{
	const struct fz_io_call own = { __NR_recvmsg, { fd, (long)msg, flags } };

	return receive_message(self, fd, (void *)msg, flags, &own);
}

int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct fz_io_cursor *c)
{
	struct fz_user_msghdr msg = {
		.iov = (struct iovec *)c->iov, .iov_count = (size_t)c->count
	};

	return receive_message(self, fd, &msg, 0, c->own);
}

int64_t fz_io_recvfrom(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
		       void *addr, uint32_t *addr_len)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_attempt a = {
		/*
		 * Not RECVMSG: recvfrom reports the length of a truncated address, which
		 * the message header has no room for.
		 */
		.call = { __NR_recvfrom,
			  { fd, (long)buf, (long)n, flags, (long)addr, (long)addr_len } },
		.pin = &pin,
		.flags_at = 3,
		.flags = flags,
	};
	int wait;

	if (!addr)
		return fz_io_recv(self, fd, buf, n, flags);
	wait = fz_io_may_wait(self, __NR_recvfrom, fd, flags, &a.info);
	if (wait > 0 && has_low_water(a.info))
		wait = FZ_OP_FORBIDDEN;
	if (wait <= 0)
		return fz_io_make_at_once(self, wait, &a.call);
	return fz_io_try_or_wait(self, &a);
}

/*
 * When a recvmmsg with a time limit ends: the kernel looks at the limit after each message, and at
 * no other time (recvmmsg(2), BUGS).
 */
struct limit {
	struct __kernel_timespec *limit;	/* the program's, or NULL */
	fz_nsec end;
};

/* Returns 0 or -errno. */
static int begin_limit(struct __kernel_timespec *limit, struct limit *ret)
{
	*ret = (struct limit){ limit, FZ_FOREVER };
	if (!limit)
		return 0;
	if (!fz_sys_readable(&limit->tv_sec) || !fz_sys_readable(&limit->tv_nsec))
		return -EFAULT;
	if (limit->tv_sec < 0 || limit->tv_nsec < 0 || limit->tv_nsec >= (long)FZ_SEC)
		return -EINVAL;
	ret->end = fz_now() + (fz_nsec)limit->tv_sec * FZ_SEC + (fz_nsec)limit->tv_nsec;
	return 0;
}

static struct __kernel_timespec time_left(const struct limit *l)
{
	const fz_nsec now = fz_now();

	return fz_timespec(l->end > now ? l->end - now : 0);
}

/* After a message: tell the program what time is left.  Returns more than 0 if there is some. */
static int update_limit(const struct limit *l)
{
	struct __kernel_timespec left;

	if (!l->limit)
		return 1;
	if (!fz_sys_writable(&l->limit->tv_sec) || !fz_sys_writable(&l->limit->tv_nsec))
		return -EFAULT;
	left = time_left(l);
	*l->limit = left;
	return left.tv_sec || left.tv_nsec;
}

/*
 * Receive up to n messages that are there.  If an error follows a message, the kernel keeps it for
 * the next call.
 */
static int64_t receive_present(int fd, struct fz_message_slot *slots, unsigned n, int flags,
			       const struct limit *l)
{
	struct __kernel_timespec left = time_left(l);

	return fz_syscall5(__NR_recvmmsg, fd, (long)slots, n, flags | FZ_MSG_DONTWAIT,
			   l->limit ? (long)&left : 0);
}

/*
 * Receive the messages that have arrived; if there is none, wait for one.  a->begun: the program's call
 * has received some messages already.
 */
static int64_t receive_some(struct fz_fiber *self, struct fz_io_attempt *a,
			    struct fz_message_slot *slots, unsigned n, const struct limit *l)
{
	struct pollfd p = { .fd = fz_pin_fd(a->pin) };
	int64_t ret;

	/* Leave an error in the socket for the program's next call: this call has messages to return. */
	if (a->begun && fz_io_poll_now(self, __NR_ppoll, &p, 1) > 0 && p.revents & POLLERR)
		return -EPIPE;
	ret = receive_present(p.fd, slots, n, a->flags, l);
	if (ret != -EAGAIN || a->only_tries)
		return ret;
	a->call = (struct fz_io_call){ __NR_recvmmsg, { 0, (long)slots, 1 } };
	a->refused = true;
	/* SO_RCVTIMEO begins anew with each message. */
	a->deadline = 0;
	return fz_io_try_or_wait(self, a);
}

int64_t fz_io_recvmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags, void *timespec)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_message_slot *slots = (void *)vec;
	struct fz_io_attempt a = {
		.pin = &pin,
		.flags_at = 3,
		.flags = flags & ~FZ_MSG_WAITFORONE,
	};
	unsigned done = 0;
	struct limit limit;
	int wait = fz_io_may_wait(self, __NR_recvmmsg, fd, flags, &a.info);
	int64_t ret = 0;

	if (wait == FZ_OP_FORBIDDEN || (wait > 0 && has_low_water(a.info))) {
		a.call = (struct fz_io_call){ __NR_recvmmsg,
					      { fd, (long)vec, n, flags, (long)timespec } };
		return fz_io_make_own(self, &a.call, fd, true);
	}
	/* A bad descriptor, too, goes to the kernel, which checks the timeout first. */
	if (wait <= 0)
		return fz_syscall5(__NR_recvmmsg, fd, (long)vec, n,
				   wait ? flags | FZ_MSG_DONTWAIT : flags, (long)timespec);
	ret = begin_limit(timespec, &limit);
	if (ret)
		return ret;
	fz_signal_mark(self);
	while (done < n) {
		a.begun = a.rest = done > 0;
		a.only_tries = a.begun && flags & FZ_MSG_WAITFORONE;
		ret = receive_some(self, &a, &slots[done], n - done, &limit);
		if (ret <= 0)
			break;
		done += (unsigned)ret;
		ret = update_limit(&limit);
		if (ret < 0)
			return ret;
		/* As natively, a message with out-of-band data ends the call. */
		if (!ret || slots[done - 1].header.flags & FZ_MSG_OOB)
			break;
	}
	return done ? (int64_t)done : ret;
}
