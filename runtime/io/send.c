/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/send.c - send to sockets.  First the call is tried without waiting, because there usually
 * is room; by a request if other fibers are about to submit requests, too.  Without room, it waits for
 * room, sends a part, and so on.
 */
#include "runtime/io/io_internal.h"

#include "runtime/base/sys.h"
#include "runtime/io/socket.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

enum {
	MESSAGES_MAX = 1024,	/* the kernel's UIO_MAXIOV */
	LARGE = 4096,		/* bytes; to copy so many costs more than a separate system call */
};

/*
 * Try once, by a request: the requests of all fibers of this processor share one system call.  For
 * streams only.
 */
static int64_t try_by_ring(struct fz_fiber *self, const struct fz_io_attempt *a, const char *buf,
			   size_t n)
{
	struct fz_op op = {
		.opcode = IORING_OP_SEND,
		.fd = fz_pin_fd(a->pin),
		.addr = (uintptr_t)buf,
		.len = fz_io_clamp(n),
		.op_flags = (uint32_t)a->flags | FZ_MSG_DONTWAIT | FZ_MSG_NOSIGNAL,
	};
	const int64_t ret = fz_io_run(self, &op, FZ_FOREVER, -EAGAIN, true);

	if (ret == -EPIPE && !(a->flags & FZ_MSG_NOSIGNAL))
		fz_signal_raise_sigpipe(self);
	return ret;
}

enum { SENT_AT_MASK = 31 };	/* the bits that fz_fiber.call.sent_at has room for */

static uint8_t wait_number(const struct fz_fiber *self)
{
	/* relaxed: only this thread begins a wait. */
	return (atomic_load_explicit(&self->wait, memory_order_relaxed) >> FZ_WAIT_NUMBER_SHIFT) &
	       SENT_AT_MASK;
}

/*
 * Should the caller try by the ring?  If other fibers of this processor are about to submit requests,
 * too, all share one system call.  That saves nothing if each switch is a system call, or if most of
 * the time goes into copying.  It also saves nothing if the fiber has not waited since it last sent,
 * for example because it passes on data that is already there: then other fibers have hardly waited
 * either, and the shared system call would be made for the sends alone.
 */
static bool shares_call(struct fz_fiber *self, size_t n)
{
	if (n >= LARGE || fz_backend_kind() != FZ_BACKEND_RING || fz_switch_is_call() ||
	    !fz_sched_has_company(self))
		return false;
	if (self->call.sent_at != wait_number(self))
		return true;
	fz_io_yield_sometimes(self, false);
	return false;
}

/* ret: of an attempt to send n bytes.  Is it a result that only a call with O_NONBLOCK returns to the program? */
static bool is_of_nonblocking(int64_t ret, size_t n)
{
	return ret == -EAGAIN || ret == -EINPROGRESS || (ret >= 0 && ret < (int64_t)n);
}

/*
 * The kernel has not taken all of c, so ask whether the descriptor has O_NONBLOCK.  Returns true if
 * *ret is now the result of the program's call; *ret may have been changed.
 */
static bool is_answer(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_io_cursor *c,
		      int64_t *ret)
{
	const int fd = fz_pin_fd(a->pin);
	const int wait = a->info & FZ_FD_OURS ? 1 : fz_io_is_blocking(fd, a->info);

	/* With FZ_FD_OURS, send_buffer() has already found that there is no O_NONBLOCK. */
	if (wait > 0)
		return false;
	if (wait == FZ_OP_FORBIDDEN && *ret > 0) {
		fz_io_cursor_advance(c, (size_t)*ret);
		fz_io_rest_forbidden(self, a, c, FZ_IO_MAX);
		*ret = (int64_t)c->done;
	} else if (wait == FZ_OP_FORBIDDEN) {
		*ret = fz_io_make_whole(self, fd, c, false);
	} else if (wait < 0 && *ret < 0) {
		*ret = wait;
	}
	return true;
}

/* own: the program's call, which is write, or sendto with these flags. */
static int64_t send_buffer(struct fz_fiber *self, const struct fz_io_call *own, int flags)
{
	const int fd = (int)own->args[0];
	const char *buf = (const char *)own->args[1];
	const size_t n = fz_io_clamp((size_t)own->args[2]);
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = n };
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_cursor c = { .own = own, .iov = &iov, .count = 1 };
	struct fz_io_attempt a = {
		.call = { __NR_sendto, { fd, own->args[1], own->args[2], flags, own->args[4],
					 own->args[5] } },
		.pin = &pin,
		.flags_at = 3,
		.flags = flags,
		.sends = true,
		.stands_in = true,
		.only_waits = flags & FZ_MSG_FASTOPEN,
		.program = own->number,
	};
	int wait = fz_io_could_wait(self, own->number, fd, flags & FZ_MSG_DONTWAIT, &a.info);
	int64_t ret = -EAGAIN;

	/* Only try; fz_io_by_parts() waits if a stream has no room. */
	a.only_tries = !own->args[4] && !a.only_waits && a.info & FZ_FD_STREAM;
	if (wait > 0 && (!a.only_tries || a.info & FZ_FD_OURS))
		wait = fz_io_is_blocking(fd, a.info);
	if (FZ_UNLIKELY(wait == FZ_OP_FORBIDDEN))
		return fz_io_make_whole(self, fd, &c, false);
	if (wait <= 0)
		return wait ? wait : fz_io_make(own);
	if (a.only_tries && shares_call(self, n))
		ret = try_by_ring(self, &a, buf, n);
	else
		ret = fz_io_try_or_wait(self, &a);
	self->call.sent_at = wait_number(self);
	if (a.only_tries && is_of_nonblocking(ret, n) && is_answer(self, &a, &c, &ret))
		return ret;
	if (a.only_tries && ret == -EAGAIN) {
		ret = fz_io_by_parts(self, &a, &c, FZ_IO_MAX);
		if (ret != FZ_OP_FORBIDDEN)
			return ret;
	}
	/* EINPROGRESS: the data has to open the connection first (TCP_FASTOPEN_CONNECT). */
	if (a.only_tries && FZ_UNLIKELY(ret == -EINPROGRESS)) {
		a.only_tries = false;
		ret = fz_io_try_or_wait(self, &a);
	}
	if (ret == FZ_OP_FORBIDDEN)
		return fz_io_make_whole(self, fz_pin_fd(&pin), &c, false);
	if (ret < 0 || ret == (int64_t)n)
		return ret;
	/* A part of a stream was sent: the address does not matter any more. */
	fz_io_cursor_advance(&c, (size_t)ret);
	return fz_io_by_parts(self, &a, &c, FZ_IO_MAX);
}

int64_t fz_io_send(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags)
{
	return fz_io_sendto(self, fd, buf, n, flags, NULL, 0);
}

int64_t fz_io_sendto(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags,
		     const void *addr, uint32_t addr_len)
{
	const struct fz_io_call own = {
		__NR_sendto, { fd, (long)buf, (long)n, flags, (long)addr, addr_len }
	};

	return FZ_IO_CALL(send_buffer(self, &own, flags));
}

int64_t fz_io_socket_write(struct fz_fiber *self, int fd, const void *buf, size_t n)
{
	const struct fz_io_call own = { __NR_write, { fd, (long)buf, (long)n } };

	return send_buffer(self, &own, 0);
}

/*
 * A filter forbids to ask for O_NONBLOCK: make the program's call for one message, announced.  begun:
 * the program's call has sent messages before.  *ret_goes_on: after a short count the rest must be sent,
 * because neither a handler nor a timeout can have ended the call, so an event of the library's has.
 */
static int64_t send_forbidden(struct fz_fiber *self, struct fz_io_attempt *a, bool begun, bool *ret_goes_on)
{
	const uint32_t handlers = self->sig.handlers_run;
	bool forever;
	int64_t ret;

	fz_pin_hold(self, a->pin);
	a->call.args[0] = fz_pin_fd(a->pin);
	forever = fz_fdtab_deadline(fz_pin_fd(a->pin), a->info, true) == FZ_FOREVER;
	ret = fz_io_make_announced(self, &a->call, FZ_CALL_CANCELLABLE |
						   (begun ? FZ_CALL_BEGUN : FZ_CALL_RESTARTS));
	*ret_goes_on = forever && handlers == self->sig.handlers_run;
	return ret;
}

static int64_t send_message(struct fz_fiber *self, int fd, const struct msghdr *msg, int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_attempt a = {
		.call = { __NR_sendmsg, { fd, (long)msg, flags } },
		.pin = &pin,
		.flags_at = 2,
		.flags = flags,
		.sends = true,
		.program = __NR_sendmsg,
		.only_waits = flags & FZ_MSG_FASTOPEN,
	};
	int wait = fz_io_may_wait(self, __NR_sendmsg, fd, flags & FZ_MSG_DONTWAIT, &a.info);
	const bool forbidden = wait == FZ_OP_FORBIDDEN;
	bool goes_on = true;
	int64_t ret;

	if (wait <= 0 && !forbidden)
		return fz_io_make_at_once(self, wait, &a.call);
	ret = forbidden ? send_forbidden(self, &a, false, &goes_on) : fz_io_try_or_wait(self, &a);
	if (ret < 0 || !goes_on)
		return ret;
	/* The kernel has read all of *msg, so it is readable. */
	return (int64_t)fz_io_rest_of_message(self, &a, (void *)msg, (size_t)ret, FZ_IO_MAX, forbidden);
}

int64_t fz_io_sendmsg(struct fz_fiber *self, int fd, const struct msghdr *msg, int flags)
{
	return FZ_IO_CALL(send_message(self, fd, msg, flags));
}

int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, struct fz_io_cursor *c)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_user_msghdr msg = {
		.iov = (struct iovec *)c->iov, .iov_count = (size_t)c->count
	};
	struct fz_io_attempt a = {
		.call = { __NR_sendmsg, { fd, (long)&msg } },
		.pin = &pin,
		.flags_at = 2,
		.sends = true,
		.stands_in = true,
		.program = c->own->number,
	};
	int wait = fz_io_may_wait(self, c->own->number, fd, 0, &a.info);
	int64_t ret;

	if (wait == 0 || wait == -EBADF)
		return wait ? wait : fz_io_make(c->own);
	ret = wait > 0 ? fz_io_try_or_wait(self, &a) : FZ_OP_FORBIDDEN;
	if (ret == FZ_OP_FORBIDDEN)
		return fz_io_make_whole(self, fz_pin_fd(&pin), c, false);
	return ret < 0 ? ret : (int64_t)fz_io_rest_of_message(self, &a, &msg, (size_t)ret, FZ_IO_MAX, false);
}

static int64_t send_messages(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
			     int flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_message_slot *slots = (void *)vec;
	struct fz_io_attempt a = {
		.pin = &pin,
		.flags_at = 3,
		.flags = flags,
		.sends = true,
		.program = __NR_sendmmsg,
		.only_waits = flags & FZ_MSG_FASTOPEN,
	};
	unsigned done = 0;
	int wait = fz_io_may_wait(self, __NR_sendmmsg, fd, flags & FZ_MSG_DONTWAIT, &a.info);
	const bool forbidden = wait == FZ_OP_FORBIDDEN;
	bool goes_on = true;
	int64_t ret = 0;

	if (wait <= 0 && !forbidden) {
		a.call = (struct fz_io_call){ __NR_sendmmsg, { fd, (long)vec, n, flags } };
		ret = fz_io_make_at_once(self, wait, &a.call);
		/* The kernel has raised SIGPIPE for the message after the last one that it has sent, perhaps. */
		if (ret > 0 && ret < n)
			fz_signal_collect(self, -EPIPE);
		return ret;
	}
	while (done < n && done < MESSAGES_MAX) {
		struct fz_message_slot *slot = &slots[done];

		/* One message per call, so that the kernel checks each slot itself. */
		a.call = (struct fz_io_call){ __NR_sendmmsg, { 0, (long)slot, 1, flags } };
		a.begun = done > 0;
		/* SO_SNDTIMEO begins anew with each message. */
		a.deadline = 0;
		a.checked = false;
		a.refused = false;
		ret = forbidden ? send_forbidden(self, &a, done > 0, &goes_on) :
				  fz_io_try_or_wait(self, &a);
		if (ret < 0)
			break;
		if (goes_on)
			slot->length = (unsigned)fz_io_rest_of_message(self, &a, &slot->header, slot->length,
								       FZ_IO_MAX, forbidden);
		done++;
		/* A timeout or a handler has cut the message short: the next one would follow a gap. */
		if (slot->length < fz_io_total(slot->header.iov, slot->header.iov_count))
			break;
	}
	/* A blocked SIGPIPE is pending for this kernel thread, which the fiber may leave: take it along. */
	if (FZ_UNLIKELY(done && ret == -EPIPE))
		fz_signal_collect(self, (int)ret);
	return done ? (int64_t)done : ret;
}

int64_t fz_io_sendmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags)
{
	return FZ_IO_CALL(send_messages(self, fd, vec, n, flags));
}
