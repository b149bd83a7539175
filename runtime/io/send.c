/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/send.c - send to sockets.  If other fibers are about to run, a request on the ring;
 * else the call is tried first, for there usually is room.  The rest of what a stream has taken in
 * part goes by the ring.
 */
#include "runtime/io/io_internal.h"

#include "runtime/base/sys.h"
#include "runtime/io/socket.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

enum { MESSAGES_MAX = 1024 };	/* the kernel's UIO_MAXIOV */

/*
 * For streams only: on other sockets, a request that has to wait before it can send may send an
 * empty message.
 */
static int64_t send_by_ring(struct fz_fiber *self, struct fz_io_attempt *a, const char *buf,
			    size_t n, bool begun)
{
	const fz_nsec deadline = fz_io_attempt_deadline(a);
	struct fz_op op = {
		.opcode = IORING_OP_SEND,
		.fd = fz_pin_fd(a->pin),
		/* The rest must not go to another file that gets the number. */
		.pin = begun ? a->pin : NULL,
		.prompt = begun,
		.hinted = true,
		.addr = (uintptr_t)buf,
		.len = fz_io_clamp(n),
		.op_flags = (uint32_t)a->flags | FZ_MSG_WAITALL | FZ_MSG_NOSIGNAL,
	};
	int64_t ret;

	if (FZ_UNLIKELY(deadline == FZ_FD_ASK_KERNEL)) {
		const struct fz_io_call c = {
			__NR_sendto, { op.fd, (long)buf, (long)n, a->flags }
		};

		return fz_io_make_announced(self, &c, begun ? FZ_CALL_GOES_ON :
							      FZ_CALL_CANCELLABLE);
	}
	/* After a handler, what is sent in part stays so, whatever SA_RESTART says. */
	ret = begun ? fz_io_run_more(self, &op, deadline, -EAGAIN, false) :
		      fz_io_run(self, &op, deadline, -EAGAIN, deadline == FZ_FOREVER);

	if (ret == -EPIPE && !(a->flags & FZ_MSG_NOSIGNAL))
		fz_signal_raise_sigpipe(self);
	return ret;
}

/*
 * Send the rest after a part has been sent.  The count must be returned, so no cancellation ends
 * the call here.
 */
static int64_t send_rest(struct fz_fiber *self, struct fz_io_attempt *a, const char *buf, size_t n)
{
	int64_t ret;

	fz_cancel_defer(self);
	ret = send_by_ring(self, a, buf, n, true);
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
	const size_t size = fz_io_clamp(n);
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_attempt a = {
		.call = { __NR_sendto, { fd, (long)buf, (long)n, flags, (long)addr, addr_len } },
		.pin = &pin,
		.flags_at = 3,
		.flags = flags,
		.sends = true,
		.only_waits = flags & FZ_MSG_FASTOPEN,
	};
	int wait = fz_io_may_wait(self, fd, flags, &a.info);
	int64_t ret, rest;

	if (wait <= 0)
		return wait ? wait : fz_io_make(&a.call);
	/* Only try; if a stream has no room, the ring waits. */
	a.only_tries = !addr && !a.only_waits && a.info & FZ_FD_STREAM;
	/*
	 * If other fibers of this processor are about to submit, too, all share one system call.
	 * That saves nothing where each switch is a system call.
	 */
	if (a.only_tries && !fz_switch_is_call() && fz_sched_has_company(self)) {
		ret = send_by_ring(self, &a, buf, n, false);
		if (FZ_LIKELY(ret != -EINPROGRESS))
			return ret;
	}
	ret = fz_io_try_or_wait(self, &a);
	if (ret == -EAGAIN && a.only_tries)
		return send_by_ring(self, &a, buf, n, false);
	if (ret < 0 || ret == (int64_t)size)
		return ret;
	/* A part of a stream was sent: the address does not matter any more. */
	rest = send_rest(self, &a, (const char *)buf + ret, size - (size_t)ret);
	return rest < 0 ? ret : ret + rest;
}

static size_t message_size(const struct fz_user_msghdr *msg)
{
	size_t total = 0;

	for (size_t i = 0; i < msg->iov_count; i++)
		total += msg->iov[i].iov_len;
	return total;
}

/*
 * Send the rest of what a stream has taken in part, one iovec after the other, without ancillary
 * data.
 */
static size_t send_rest_of_message(struct fz_fiber *self, struct fz_io_attempt *a,
				   const struct fz_user_msghdr *msg, size_t sent)
{
	size_t skip = sent;

	if (sent == message_size(msg))
		return sent;
	for (size_t i = 0; i < msg->iov_count; i++) {
		const struct iovec *iov = &msg->iov[i];
		int64_t ret;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		ret = send_rest(self, a, (const char *)iov->iov_base + skip, iov->iov_len - skip);
		if (ret < 0)
			break;
		sent += (size_t)ret;
		if ((size_t)ret < iov->iov_len - skip)
			break;
		skip = 0;
	}
	return sent;
}

int64_t fz_io_sendmsg(struct fz_fiber *self, int fd, const struct msghdr *msg, int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_attempt a = {
		.call = { __NR_sendmsg, { fd, (long)msg, flags } },
		.pin = &pin,
		.flags_at = 2,
		.flags = flags,
		.sends = true,
		.only_waits = flags & FZ_MSG_FASTOPEN,
	};
	int wait = fz_io_may_wait(self, fd, flags, &a.info);
	int64_t ret;

	if (wait <= 0)
		return wait ? wait : fz_io_make(&a.call);
	ret = fz_io_try_or_wait(self, &a);
	/* The kernel has read all of *msg, so it is readable. */
	return ret < 0 ? ret :
			 (int64_t)send_rest_of_message(self, &a, (const void *)msg, (size_t)ret);
}

int64_t fz_io_sendmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_message_slot *slots = (void *)vec;
	struct fz_io_attempt a = {
		.pin = &pin,
		.flags_at = 3,
		.flags = flags,
		.sends = true,
		.only_waits = flags & FZ_MSG_FASTOPEN,
	};
	unsigned done = 0;
	int wait = fz_io_may_wait(self, fd, flags, &a.info);
	int64_t ret = 0;

	if (wait <= 0)
		return wait ? wait : fz_syscall4(__NR_sendmmsg, fd, (long)vec, n, flags);
	while (done < n && done < MESSAGES_MAX) {
		struct fz_message_slot *slot = &slots[done];

		/* One message per call, so that the kernel checks each slot itself. */
		a.call = (struct fz_io_call){ __NR_sendmmsg, { 0, (long)slot, 1 } };
		a.begun = done > 0;
		/* SO_SNDTIMEO begins anew with each message. */
		a.deadline = 0;
		ret = fz_io_try_or_wait(self, &a);
		if (ret < 0)
			break;
		slot->length = (unsigned)send_rest_of_message(self, &a, &slot->header,
							      slot->length);
		done++;
		/* Sent in part, as a timeout or a handler leaves it: the next would follow a gap. */
		if (slot->length < message_size(&slot->header))
			break;
	}
	return done ? (int64_t)done : ret;
}
