/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/recv.c - receive from sockets.  recv and recvmsg (and read and readv, which become recv
 * and recvmsg) are requests on the ring, after an attempt if data is likely to be there.  recvfrom
 * with an address tries without waiting, then waits for readiness; so does a call with several buffers that waits for more
 * than some bytes.
 */
#include "runtime/io/io_internal.h"

#include <asm/ioctls.h>
#include <asm/socket.h>
#include <poll.h>

#include "runtime/backend/filter.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/follow.h"
#include "runtime/io/socket.h"
#include "runtime/sched/announce.h"

/* With these flags, readiness does not tell whether a call waits. */
enum { WAITS_IN_SPITE = FZ_MSG_PEEK | FZ_MSG_OOB };

/* Receive what is there.  Returns -EAGAIN also if a filter forbids to try. */
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

/* Is this the length of an address, which natively only the kernel reads, and one that recvmsg takes, too? */
static bool is_length(const int *len)
{
	const uintptr_t word = sizeof(uint64_t) - 1, first = (uintptr_t)len & ~word;
	const uintptr_t last = ((uintptr_t)len + sizeof(*len) - 1) & ~word;

	return fz_sys_readable((const void *)first) && (last == first || fz_sys_readable((const void *)last)) &&
	       *len >= 0;
}

/* ret bytes have come.  Store the length of their sender's address.  Returns ret, or -EFAULT. */
static int64_t store_length(int *to, int len, int64_t ret)
{
	if (!fz_sys_int_writable(to))
		return -EFAULT;
	*to = len;
	return ret;
}

/*
 * Receive what is there by a request: where nothing is, that costs a system call less than an attempt first.  From
 * MUCH bytes on, copying takes longer than that call: an attempt is as fast with 100 kB, and faster with 300 kB.
 */
static int64_t receive_first(struct fz_fiber *self, const struct fz_op *op, struct fz_pin *pin, fz_nsec deadline)
{
	enum { MUCH = 65536 };	/* bytes */
	struct fz_op first = *op;

	if (fz_backend_kind() != FZ_BACKEND_RING || deadline == FZ_FD_ASK_KERNEL || op->len >= MUCH ||
	    fz_io_is_likely(self))
		return FZ_OP_FORBIDDEN;
	first.hinted = pin->hinted;
	first.op_flags &= ~(uint32_t)FZ_MSG_WAITALL;
	/* Not a spare pin: the call goes on by the descriptor, so it needs a copy when that is closed meanwhile. */
	first.pin = pin;
	return fz_io_run(self, &first, deadline, -EAGAIN, deadline == FZ_FOREVER);
}

/* Are so many bytes there that the call need not wait?  Of several buffers nobody asks. */
static bool is_all_there(const struct fz_io_attempt *a, const struct fz_user_msghdr *msg, size_t asked, size_t least)
{
	int there = 0;

	if (msg) {
		if (!fz_sys_readable(&msg->iov) || !fz_sys_readable(&msg->iov_count) || msg->iov_count != 1 ||
		    fz_io_bad_vector(msg->iov, 1))
			return false;
		asked = fz_io_clamp(msg->iov->iov_len);
	}
	return fz_io_may_look() && fz_syscall3(__NR_ioctl, fz_pin_fd(a->pin), FIONREAD, (long)&there) == 0 &&
	       (size_t)there >= (asked < least ? asked : least);
}

/*
 * Make the program's call, with MSG_WAITALL or SO_RCVLOWAT, until `least` bytes are there: receive what there is, then the
 * rest.  forbidden: a filter forbids what stands in for the program's call, so that one is made, which waits in the kernel.
 * A request with MSG_WAITALL would go on where the kernel ends a call: at the mark of urgent data, after descriptors.
 */
static int64_t receive_whole(struct fz_fiber *self, const struct fz_op *op, const struct fz_io_call *own,
			     uint32_t info, size_t least, bool forbidden)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(op->fd);
	const bool message = op->opcode == IORING_OP_RECVMSG, named = own->number == __NR_recvfrom && own->args[4];
	const bool looks = message || fz_io_looks_for_descriptors(info);
	int *name_len = named && looks ? (int *)own->args[5] : NULL;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)op->addr, .iov_len = op->len };
	struct fz_user_msghdr one = { .iov = &iov, .iov_count = 1 };
	struct fz_user_msghdr *msg = message ? (void *)(uintptr_t)op->addr : &one;
	const fz_nsec deadline = fz_fdtab_deadline(op->fd, info, false);
	struct fz_io_attempt a = {
		.call = { __NR_recvmsg, { op->fd, (long)msg } },
		.pin = &pin,
		.info = info,
		.flags_at = 2,
		.flags = (int)op->op_flags,
		.stands_in = true,
		.program = own->number,
		.deadline = deadline,
	};
	int64_t ret = FZ_OP_FORBIDDEN;

	pin.hinted = fz_fdtab_wait(op->fd, fz_fdtab_rests(info));
	if (fz_io_kernel_gathers(&a, message ? msg : NULL))
		return fz_io_make_announced(self, own,
					    (is_all_there(&a, message ? msg : NULL, op->len, least) ? 0 :
												     FZ_CALL_UNDISTURBED) |
						    FZ_CALL_CANCELLABLE |
						    (deadline == FZ_FOREVER ? FZ_CALL_RESTARTS : 0));
	if (name_len && is_length(name_len)) {
		one.name = (void *)own->args[4];
		one.name_len = *name_len;
	} else if (named || !looks) {
		a.call = (struct fz_io_call){ __NR_recvfrom, { op->fd, (long)op->addr, op->len, a.flags } };
		a.call.args[4] = named ? own->args[4] : 0;
		a.call.args[5] = named ? own->args[5] : 0;
		a.flags_at = 3;
	}
	/* Below SO_RCVLOWAT a request would leave what is there when its wait ends. */
	if (!forbidden && !looks && !named && !(info & FZ_FD_LOW_WATER))
		ret = receive_first(self, op, &pin, deadline);
	if (!forbidden && ret == FZ_OP_FORBIDDEN)
		ret = fz_io_try_or_wait(self, &a);
	if (ret == FZ_OP_FORBIDDEN) {
		forbidden = true;
		one.name = NULL;
		fz_pin_hold(self, &pin);
		ret = fz_io_make_own(self, own, fz_pin_fd(&pin), deadline == FZ_FOREVER);
	}
	/* If a handler has ended the program's own call, a short count is the call's result. */
	if (ret > 0 && (size_t)ret < least && !(forbidden && fz_signal_handled(self))) {
		/* The kernel has read all of the message's header, so it is readable. */
		ret = (int64_t)fz_io_rest_of_message(self, &a, msg, (size_t)ret, least, forbidden);
	}
	return ret >= 0 && one.name ? store_length(name_len, one.name_len, ret) : ret;
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
	int64_t ret;

	op->spare = &spare;
	op->hinted = fz_fdtab_wait(op->fd, fz_fdtab_rests(info));
	/*
	 * receive_whole() is for those that honour MSG_WAITALL; the ring would join records of SOCK_SEQPACKET.  For
	 * MSG_ERRQUEUE, which a Unix socket ignores, the ring would not wait for data.
	 */
	op->op_flags &= ~(uint32_t)(FZ_MSG_WAITALL | FZ_MSG_ERRQUEUE);
	if (FZ_UNLIKELY(deadline == FZ_FD_ASK_KERNEL))
		return fz_io_make_announced(self, own, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE);
	/* With SO_RCVLOWAT, how much data is enough on a stream depends on the size asked for. */
	if (!(op->op_flags & WAITS_IN_SPITE) && op->opcode == IORING_OP_RECV && op->len)
		op->turn = (uint64_t)op->len << 32 | POLLIN;
	else if (!(op->op_flags & WAITS_IN_SPITE) && !(info & FZ_FD_STREAM))
		op->turn = POLLIN;
	/* With a timeout the call is not restarted after a handler, SA_RESTART or not: signal(7). */
	ret = fz_io_run(self, op, deadline, -EAGAIN, deadline == FZ_FOREVER);
	if (FZ_LIKELY(ret != FZ_OP_FORBIDDEN))
		return ret;
	fz_pin_hold(self, &spare);
	return fz_io_make_own(self, own, fz_pin_fd(&spare), deadline == FZ_FOREVER);
}

/*
 * A message with room for ancillary data, from a Unix stream: an attempt that finds nothing stores credentials all the same,
 * of nobody, which look like root's.  A system call forgets them, but the ring's next attempt of a request stores behind them.
 */
static bool is_for_attempts(const struct fz_io_call *own, uint32_t info)
{
	const struct fz_user_msghdr *msg = (const void *)own->args[1];

	return own->number == __NR_recvmsg && info & FZ_FD_UNIX && info & FZ_FD_STREAM &&
	       fz_sys_readable(&msg->control_len) && msg->control_len;
}

static int64_t receive_by_attempts(struct fz_fiber *self, const struct fz_op *op,
				   const struct fz_io_call *own, uint32_t info)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(op->fd);
	struct fz_io_attempt a = {
		.call = *own,
		.pin = &pin,
		.info = info,
		.flags_at = 2,
		.flags = (int)op->op_flags,
	};

	return fz_io_try_or_wait(self, &a);
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

/* own: the call that the program has made. */
static int64_t receive(struct fz_fiber *self, struct fz_op *op, const struct fz_io_call *own)
{
	uint32_t info;
	size_t least;
	int wait;
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
	least = fz_io_least(op->fd, info, (int)op->op_flags, &wait);
	if (wait <= 0 && least == 1)
		return fz_io_make_at_once(self, wait, own);
	if (FZ_UNLIKELY(least > 1))
		return receive_whole(self, op, own, info, least, wait < 0);
	if (FZ_UNLIKELY(is_for_attempts(own, info)))
		return receive_by_attempts(self, op, own, info);
	ret = receive_likely(self, op, info);
	return ret == -EAGAIN ? receive_by_request(self, op, own, info) : ret;
}

static int64_t receive_buffer(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
			      const struct fz_io_call *own)
{
	struct fz_op op = {
		.opcode = IORING_OP_RECV,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.len = fz_io_clamp(n),
		.op_flags = (uint32_t)flags,
	};
	const int64_t ret = receive(self, &op, own);

	/* That MSG_WAITALL has filled the buffer tells nothing of what is behind. */
	self->call.bulk = n > 1 && ret == (int64_t)op.len && !(flags & FZ_MSG_WAITALL);
	/* A full buffer: more data may be there.  MSG_PEEK: this data is still there. */
	if (self->call.bulk || (ret > 0 && flags & FZ_MSG_PEEK))
		fz_io_expect_data(self, 1);
	return ret;
}

int64_t fz_io_recv(struct fz_fiber *self, int fd, void *buf, size_t n, int flags)
{
	const struct fz_io_call own = { __NR_recvfrom, { fd, (long)buf, (long)n, flags } };

	return FZ_IO_CALL(receive_buffer(self, fd, buf, n, flags, &own));
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

	return FZ_IO_CALL(receive_message(self, fd, (void *)msg, flags, &own));
}

int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct fz_io_cursor *c)
{
	struct fz_user_msghdr msg = {
		.iov = (struct iovec *)c->iov, .iov_count = (size_t)c->count
	};

	return receive_message(self, fd, &msg, 0, c->own);
}

static int64_t receive_from(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
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
	struct fz_op op = {
		.opcode = IORING_OP_RECV, .fd = fd, .addr = (uintptr_t)buf, .len = fz_io_clamp(n),
		.op_flags = (uint32_t)flags,
	};
	size_t least;
	int wait;

	wait = fz_io_may_wait(self, __NR_recvfrom, fd, flags, &a.info);
	least = fz_io_least(fd, a.info, flags, &wait);
	if (FZ_UNLIKELY(least > 1))
		return receive_whole(self, &op, &a.call, a.info, least, wait < 0);
	if (wait <= 0)
		return fz_io_make_at_once(self, wait, &a.call);
	return fz_io_try_or_wait(self, &a);
}

int64_t fz_io_recvfrom(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
		       void *addr, uint32_t *addr_len)
{
	if (!addr)
		return fz_io_recv(self, fd, buf, n, flags);
	return FZ_IO_CALL(receive_from(self, fd, buf, n, flags, addr, addr_len));
}
