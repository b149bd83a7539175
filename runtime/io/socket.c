/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/socket.c - sockets: receiving goes to the ring; so does sending if
 * other fibers are about to run, else it is tried first, for there usually is
 * room.
 */
#include "runtime/io/io_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>

#include "runtime/sched/announce.h"
#include "runtime/io/socket.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/base/sys.h"
#include "runtime/sched/timer.h"

enum {
	FLAG_PEEK = 0x2,
	FLAG_DONTWAIT = 0x40,
	FLAG_WAITALL = 0x100,
	FLAG_ERRQUEUE = 0x2000,
	FLAG_NOSIGNAL = 0x4000,
	FLAG_WAITFORONE = 0x10000,
	MESSAGES_MAX = 1024,	/* the kernel's UIO_MAXIOV */
};

int fz_io_may_wait(struct fz_fiber *self, int fd, int flags, uint32_t *ret_info)
{
	int nonblocking;

	if (fz_fdtab_look_up(fd, ret_info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (flags & (FLAG_DONTWAIT | FLAG_ERRQUEUE) ||
	    (*ret_info & FZ_FD_KIND_MASK) != FZ_FD_SOCKET)
		return 0;
	nonblocking = fz_fdtab_nonblocking(fd, *ret_info);
	return nonblocking < 0 ? nonblocking : !nonblocking;
}

/* A system call as such: its number and arguments. */
struct call {
	long number, args[6];
};

static int64_t make(const struct call *c)
{
	return fz_syscall6(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
			   c->args[5]);
}

static int64_t make_announced(struct fz_fiber *self, const struct call *c, bool restart)
{
	const uint32_t handlers = self->sig.handlers_run;
	int64_t ret;

	fz_signal_mark(self);
	fz_announce(self);
	do {
		bool changed = fz_cancel_begin_call(self);

		ret = make(c);
		fz_cancel_end_call(self, changed);
		/* For nothing: a signal was for another thread. */
	} while (ret == -EINTR && (self->sig.handlers_run == handlers ||
				   (restart && fz_signal_restarts(self))));
	fz_io_announce_end(self, ret);
	return ret;
}

/* ---- receive ------------------------------------------------------------ */

/*
 * MSG_PEEK with MSG_WAITALL: the ring would put the same bytes behind those that it has
 * looked at already.
 */
static int64_t peek_whole(struct fz_fiber *self, int fd, const struct fz_op *op, bool restart)
{
	const uint32_t handlers = self->sig.handlers_run;
	int64_t ret, seen = 0;
	bool again;

	fz_signal_mark(self);
	fz_announce(self);
	do {
		bool changed = fz_cancel_begin_call(self);

		ret = op->opcode == IORING_OP_RECVMSG ?
			      fz_syscall3(__NR_recvmsg, fd, (long)op->addr, op->op_flags) :
			      fz_syscall6(__NR_recvfrom, fd, (long)op->addr, op->len,
					  op->op_flags, 0, 0);
		fz_cancel_end_call(self, changed);
		again = self->sig.handlers_run == handlers;
		if (ret == -EINTR) {
			/* For nothing: a signal was for another thread. */
			again = again || (restart && fz_signal_restarts(self));
		} else {
			/* Short, perhaps only because a request of this kernel thread is complete. */
			again = again && ret > seen && ret != (int64_t)op->len;
			seen = ret > seen ? ret : seen;
		}
	} while (again);
	return seen ? seen : ret;
}

/* Not with RECVSEND_POLL_FIRST: measured, it costs a tenth of a request. */
static int64_t receive(struct fz_fiber *self, int fd, struct fz_op *op, uint32_t info)
{
	fz_nsec deadline = fz_fdtab_deadline(fd, info, false);

	fz_io_take_turns(self);
	/* Only streams have an eye to it; the ring would join records of SOCK_SEQPACKET. */
	if (op->op_flags & FLAG_WAITALL && !fz_sys_is_stream(fd))
		op->op_flags &= ~(uint32_t)FLAG_WAITALL;
	if (op->op_flags & FLAG_WAITALL && op->op_flags & FLAG_PEEK)
		return peek_whole(self, fd, op, deadline == FZ_FOREVER);
	/* With a timeout no handler lets the call go on: signal(7). */
	return fz_io_run(self, op, deadline, -EAGAIN, deadline == FZ_FOREVER);
}

int64_t fz_io_recv(struct fz_fiber *self, int fd, void *buf, size_t n, int flags)
{
	uint32_t info;
	int wait = fz_io_may_wait(self, fd, flags, &info);

	if (wait < 0)
		return wait;
	if (wait) {
		struct fz_op op = {
			.opcode = IORING_OP_RECV,
			.fd = fd,
			.addr = (uintptr_t)buf,
			.len = fz_io_clamp(n),
			.op_flags = (uint32_t)flags,
		};

		return receive(self, fd, &op, info);
	}
	return fz_syscall6(__NR_recvfrom, fd, (long)buf, (long)n, flags, 0, 0);
}

int64_t fz_io_recvmsg(struct fz_fiber *self, int fd, struct msghdr *msg, int flags)
{
	uint32_t info;
	int wait = fz_io_may_wait(self, fd, flags, &info);

	if (wait < 0)
		return wait;
	if (wait) {
		struct fz_op op = {
			.opcode = IORING_OP_RECVMSG,
			.fd = fd,
			.addr = (uintptr_t)msg,
			.len = 1,
			.op_flags = (uint32_t)flags,
		};

		return receive(self, fd, &op, info);
	}
	return fz_syscall3(__NR_recvmsg, fd, (long)msg, flags);
}

int64_t fz_io_recvfrom(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
		       void *addr, uint32_t *addr_len)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	unsigned refusals = 0;
	fz_nsec deadline;
	uint32_t info;
	int wait;

	if (!addr)
		return fz_io_recv(self, fd, buf, n, flags);
	wait = fz_io_may_wait(self, fd, flags, &info);
	if (wait < 0)
		return wait;
	deadline = fz_fdtab_deadline(fd, info, false);
	/*
	 * Not RECVMSG: recvfrom reports the length of a truncated address, which
	 * the message header has no room for.
	 */
	for (;;) {
		struct call c = { __NR_recvfrom, { fz_pin_fd(&pin), (long)buf, (long)n,
						   wait ? flags | FLAG_DONTWAIT : flags,
						   (long)addr, (long)addr_len } };
		int64_t ret = make(&c);

		if (ret != -EAGAIN || !wait)
			return ret;
		if (fz_op_is_refused(fz_pin_fd(&pin), POLLIN, &refusals)) {
			c.args[3] = flags;
			return make_announced(self, &c, deadline == FZ_FOREVER);
		}
		ret = fz_io_wait_ready(self, &pin, POLLIN, deadline, deadline == FZ_FOREVER);
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
	}
}

/* The kernel's struct mmsghdr: it writes the length behind the header. */
struct message_slot {
	struct user_msghdr {
		void *name;
		int name_len;
		struct iovec *iov;
		size_t iov_count;
		void *control;
		size_t control_len;
		unsigned flags;
	} header;
	unsigned length;
};

int64_t fz_io_recvmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags, void *timespec)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct message_slot *slots = (void *)vec;
	struct __kernel_timespec *timeout = timespec;
	fz_nsec deadline = FZ_FOREVER, end = FZ_FOREVER;
	uint32_t info;
	unsigned done = 0, refusals = 0;
	int wait = fz_io_may_wait(self, fd, flags, &info);
	int64_t ret = 0;

	/* The kernel judges the timeout before the descriptor. */
	if (wait <= 0)
		return fz_syscall5(__NR_recvmmsg, fd, (long)vec, n,
				   wait ? flags | FLAG_DONTWAIT : flags, (long)timespec);
	if (timeout) {
		if (!fz_sys_readable(&timeout->tv_sec) || !fz_sys_readable(&timeout->tv_nsec))
			return -EFAULT;
		if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= (long)FZ_SEC)
			return -EINVAL;
		end = fz_now() + (fz_nsec)timeout->tv_sec * FZ_SEC + (fz_nsec)timeout->tv_nsec;
	}
	while (done < n) {
		struct call c = { __NR_recvmmsg, { fz_pin_fd(&pin), (long)&slots[done], 1,
						   (flags & ~FLAG_WAITFORONE) | FLAG_DONTWAIT } };

		ret = make(&c);
		if (ret == -EAGAIN && !(done && flags & FLAG_WAITFORONE)) {
			/* Each message has all of SO_RCVTIMEO. */
			if (!refusals)
				deadline = fz_fdtab_deadline(fz_pin_fd(&pin), info, false);
			if (fz_op_is_refused(fz_pin_fd(&pin), POLLIN, &refusals)) {
				c.args[3] = flags & ~FLAG_WAITFORONE;
				ret = make_announced(self, &c, deadline == FZ_FOREVER && !done);
			} else {
				ret = fz_io_wait_more(self, &pin, POLLIN, deadline,
						      deadline == FZ_FOREVER && !done, done > 0);
				if (ret > 0)
					continue;
				ret = ret ? ret : -EAGAIN;
			}
		}
		if (ret < 0)
			break;
		done++;
		refusals = 0;
		/* Only looked at after each message: recvmmsg(2), BUGS. */
		if (end != FZ_FOREVER) {
			fz_nsec now = fz_now();

			*timeout = fz_timespec(end > now ? end - now : 0);
			if (now >= end)
				break;
		}
	}
	return done ? (int64_t)done : ret;
}

/* ---- send --------------------------------------------------------------- */

/* Of a stream only: what has to wait before it can be sent may be sent as an empty message. */
static int64_t send_rest(struct fz_fiber *self, struct fz_pin *pin, const char *buf, size_t n,
			 int flags, fz_nsec deadline, bool begun)
{
	struct fz_op op = {
		.opcode = IORING_OP_SEND,
		.fd = fz_pin_fd(pin),
		/* What is left must not go to another file. */
		.pin = begun ? pin : NULL,
		.prompt = begun,
		.addr = (uintptr_t)buf,
		.len = fz_io_clamp(n),
		.op_flags = (uint32_t)flags | FLAG_WAITALL | FLAG_NOSIGNAL,
	};
	int64_t ret = fz_io_run(self, &op, deadline, -EAGAIN, deadline == FZ_FOREVER);

	if (ret == -EPIPE && !(flags & FLAG_NOSIGNAL))
		fz_io_raise_sigpipe();
	return ret;
}

/* The part before it is sent, and must be returned: no cancellation, not here. */
static int64_t send_begun(struct fz_fiber *self, struct fz_pin *pin, const char *buf, size_t n,
			  int flags, fz_nsec deadline)
{
	int64_t ret;

	fz_cancel_defer(self);
	ret = send_rest(self, pin, buf, n, flags, deadline, true);
	fz_cancel_undefer(self);
	return ret;
}

int64_t fz_io_send(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags)
{
	return fz_io_sendto(self, fd, buf, n, flags, NULL, 0);
}

int64_t fz_io_sendto(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags,
		     const void *addr, uint32_t addr_len)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	unsigned refusals = 0;
	uint32_t info;
	fz_nsec deadline;
	int wait = fz_io_may_wait(self, fd, flags, &info);

	if (wait < 0)
		return wait;
	/*
	 * With others that are about to submit, one system call is shared by all; it saves
	 * nothing where each switch is a system call.
	 */
	if (wait && !addr && info & FZ_FD_STREAM && !fz_switch_is_call() &&
	    fz_sched_has_company(self))
		return send_rest(self, &pin, buf, n, flags, fz_fdtab_deadline(fd, info, true),
				 false);
	deadline = FZ_FOREVER;
	for (;;) {
		struct call c = { __NR_sendto, { fz_pin_fd(&pin), (long)buf, (long)n,
						 wait ? flags | FLAG_DONTWAIT : flags, (long)addr,
						 addr_len } };
		int64_t ret = make(&c), rest;

		if (!wait || ret == (int64_t)n || (ret < 0 && ret != -EAGAIN))
			return ret;
		if (!refusals)
			deadline = fz_fdtab_deadline(fd, info, true);
		/* Part of a stream went out: the address does not matter any more. */
		if (ret > 0) {
			rest = send_begun(self, &pin, (const char *)buf + ret, n - (size_t)ret,
					  flags, deadline);
			return rest < 0 ? ret : ret + rest;
		}
		if (!addr && fz_sys_is_stream(fz_pin_fd(&pin)))
			return send_rest(self, &pin, buf, n, flags, deadline, false);
		if (fz_op_is_refused(fz_pin_fd(&pin), POLLOUT, &refusals)) {
			c.args[3] = flags;
			return make_announced(self, &c, deadline == FZ_FOREVER);
		}
		ret = fz_io_wait_ready(self, &pin, POLLOUT, deadline, deadline == FZ_FOREVER);
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
	}
}

/* What a stream took only in part goes on piece by piece, without ancillary data. */
static int64_t send_rest_of_message(struct fz_fiber *self, struct fz_pin *pin,
				    const struct user_msghdr *msg, size_t sent, int flags,
				    fz_nsec deadline)
{
	size_t skip = sent;

	for (size_t i = 0; i < msg->iov_count; i++) {
		const struct iovec *iov = &msg->iov[i];
		int64_t ret;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		ret = send_begun(self, pin, (const char *)iov->iov_base + skip,
				 iov->iov_len - skip, flags, deadline);
		if (ret < 0)
			break;
		sent += (size_t)ret;
		if ((size_t)ret < iov->iov_len - skip)
			break;
		skip = 0;
	}
	return (int64_t)sent;
}

static size_t message_size(const struct user_msghdr *msg)
{
	size_t total = 0;

	for (size_t i = 0; i < msg->iov_count; i++)
		total += msg->iov[i].iov_len;
	return total;
}

int64_t fz_io_sendmsg(struct fz_fiber *self, int fd, const struct msghdr *msg, int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	const struct user_msghdr *m = (const void *)msg;
	unsigned refusals = 0;
	fz_nsec deadline;
	uint32_t info;
	int wait = fz_io_may_wait(self, fd, flags, &info);

	if (wait < 0)
		return wait;
	deadline = fz_fdtab_deadline(fd, info, true);
	for (;;) {
		struct call c = { __NR_sendmsg, { fz_pin_fd(&pin), (long)msg,
						  wait ? flags | FLAG_DONTWAIT : flags } };
		int64_t ret = make(&c);

		if (!wait || (ret < 0 && ret != -EAGAIN))
			return ret;
		if (ret >= 0)
			/* The kernel has read all of *msg by now: so may we. */
			return (size_t)ret == message_size(m) ?
				       ret :
				       send_rest_of_message(self, &pin, m, (size_t)ret,
							    flags, deadline);
		if (fz_op_is_refused(fz_pin_fd(&pin), POLLOUT, &refusals)) {
			c.args[2] = flags;
			return make_announced(self, &c, deadline == FZ_FOREVER);
		}
		ret = fz_io_wait_ready(self, &pin, POLLOUT, deadline, deadline == FZ_FOREVER);
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
	}
}

int64_t fz_io_sendmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct message_slot *slots = (void *)vec;
	unsigned done = 0, refusals = 0;
	fz_nsec deadline = FZ_FOREVER;
	uint32_t info;
	int wait = fz_io_may_wait(self, fd, flags, &info);
	int64_t ret = 0;

	if (wait <= 0)
		return wait ? wait : fz_syscall4(__NR_sendmmsg, fd, (long)vec, n, flags);
	while (done < n && done < MESSAGES_MAX) {
		struct message_slot *slot = &slots[done];
		/* One by one: the kernel's own judgement of each slot, unlike ours. */
		struct call c = { __NR_sendmmsg, { fz_pin_fd(&pin), (long)slot, 1,
						   flags | FLAG_DONTWAIT } };

		ret = make(&c);
		if (ret == -EAGAIN) {
			if (!refusals)
				deadline = fz_fdtab_deadline(fz_pin_fd(&pin), info, true);
			if (fz_op_is_refused(fz_pin_fd(&pin), POLLOUT, &refusals)) {
				c.args[3] = flags;
				ret = make_announced(self, &c, deadline == FZ_FOREVER && !done);
			} else {
				ret = fz_io_wait_more(self, &pin, POLLOUT, deadline,
						      deadline == FZ_FOREVER && !done, done > 0);
				if (ret > 0)
					continue;
				ret = ret ? ret : -EAGAIN;
			}
		}
		if (ret < 0)
			break;
		if (slot->length < message_size(&slot->header))
			slot->length = (unsigned)send_rest_of_message(
				self, &pin, &slot->header, slot->length, flags,
				fz_fdtab_deadline(fz_pin_fd(&pin), info, true));
		done++;
		refusals = 0;
	}
	return done ? (int64_t)done : ret;
}

/* ---- vectors ------------------------------------------------------------ */

int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct user_msghdr msg = { .iov = (struct iovec *)iov, .iov_count = (size_t)count };

	return fz_io_recvmsg(self, fd, (struct msghdr *)&msg, 0);
}

int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct user_msghdr msg = { .iov = (struct iovec *)iov, .iov_count = (size_t)count };

	return fz_io_sendmsg(self, fd, (const struct msghdr *)&msg, 0);
}
