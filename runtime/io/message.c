/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/message.c - a message on a stream, of which the call transfers all, or so much: by parts, after each of which
 * it waits.  And recvmmsg, which receives several messages.
 */
#include "runtime/io/io_internal.h"

#include <asm/socket.h>

#include "runtime/backend/filter.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/socket.h"

/* ---- by parts ------------------------------------------------------------ */

/*
 * Calls that send go by parts, and those that receive with MSG_WAITALL or SO_RCVLOWAT.  The count of a part must be
 * returned.  So a handler, a timeout or an error ends the call, and a cancellation does, too: the thread's next call acts on
 * it.  The next call also gets the error.  As natively, a call that receives also ends at the mark of urgent data, and after
 * bytes with which descriptors have come.
 */

enum { OPTION_PASS_PIDFD = 76 };

size_t fz_io_least(int fd, uint32_t info, int flags, int *wait)
{
	int least;

	if (*wait <= 0 && *wait != FZ_OP_FORBIDDEN)
		return 1;
	/* Only streams honour MSG_WAITALL; the ring would also join records of SOCK_SEQPACKET. */
	if (FZ_LIKELY(!(flags & FZ_MSG_WAITALL) && !(info & FZ_FD_LOW_WATER)) || !(info & FZ_FD_STREAM) ||
	    flags & FZ_MSG_OOB)
		return 1;
	if (flags & FZ_MSG_WAITALL)
		return SIZE_MAX;
	least = fz_sys_socket_option(fd, SO_RCVLOWAT);
	if (least < 0)
		*wait = FZ_OP_FORBIDDEN;
	return least > 1 ? (size_t)least : 1;
}

/* Does a Unix socket add credentials to what it receives? */
static bool adds_credentials(int fd)
{
	return fz_sys_socket_option(fd, SO_PASSCRED) > 0 || fz_sys_socket_option(fd, SO_PASSSEC) > 0 ||
	       fz_sys_socket_option(fd, OPTION_PASS_PIDFD) > 0;
}

bool fz_io_kernel_gathers(struct fz_io_attempt *a, const struct fz_user_msghdr *msg)
{
	a->room = msg && fz_sys_readable(&msg->control_len) ? msg->control_len : 0;
	return a->flags & FZ_MSG_PEEK ||
	       (a->info & FZ_FD_UNIX && (fz_io_may_look() ? adds_credentials(fz_pin_fd(a->pin)) : a->room != 0));
}

/* Does the call go on after a part, from which `handlers` was read before? */
static bool goes_on(struct fz_fiber *self, struct fz_io_attempt *a, uint32_t handlers)
{
	const fz_nsec deadline = fz_io_attempt_deadline(a);

	/* Each call has the whole timeout: make none past the deadline. */
	if (handlers != self->sig.handlers_run || (deadline != FZ_FOREVER && fz_now() >= deadline))
		return false;
	/* On a Unix socket an error is taken by the call that has received a part, and not told. */
	return a->sends || !((!(a->info & FZ_FD_UNIX) && fz_io_is_broken(a)) || fz_io_is_at_mark(a));
}

/* A broken connection has raised SIGPIPE for the part before; and the first part has opened the connection. */
static int flags_of_rest(const struct fz_io_attempt *a)
{
	return a->sends ? (a->flags | FZ_MSG_NOSIGNAL) & ~FZ_MSG_FASTOPEN : a->flags;
}

/* Returns the message for a part: with the room for ancillary data that the program's has. */
static struct fz_user_msghdr message_of(const struct fz_io_attempt *a, const struct iovec *iov, int count)
{
	return (struct fz_user_msghdr){
		.iov = (struct iovec *)iov,
		.iov_count = (size_t)count,
		.control = a->room ? a->message->control : NULL,
		.control_len = a->room,
	};
}

/*
 * Have descriptors come with a part?  Natively they end the call.  No credentials come with it (fz_io_kernel_gathers), so
 * without room for them MSG_CTRUNC tells.
 */
static bool has_descriptors(const struct fz_io_attempt *a, const struct fz_user_msghdr *msg)
{
	return !a->sends && fz_io_looks_for_descriptors(a->info) && (msg->control_len || msg->flags & FZ_MSG_CTRUNC);
}

/* n bytes of a part are done.  Returns true if it ends the call. */
static bool take_part(const struct fz_io_attempt *a, struct fz_io_cursor *c, const struct fz_user_msghdr *part, int64_t n)
{
	fz_io_cursor_advance(c, (size_t)n);
	if (!a->sends) {
		a->message->flags |= part->flags;
		a->message->control_len = part->control_len ? part->control_len : a->message->control_len;
	}
	return has_descriptors(a, part);
}

void fz_io_rest_forbidden(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_io_cursor *c, size_t least)
{
	const int fd = fz_pin_fd(a->pin);
	const uint32_t handlers = self->sig.handlers_run;
	const long flags = flags_of_rest(a);

	while (c->count && c->done < least && goes_on(self, a, handlers)) {
		const size_t wanted = least - c->done;
		struct iovec part;
		struct fz_message_slot slot = { .header = message_of(a, &part, 1) };
		struct fz_io_call call = { a->program, { fd, 0, 0, flags } };
		int64_t ret;

		fz_io_cursor_element(c, &part);
		/* With SO_RCVLOWAT the kernel would wait for as many bytes again. */
		if (part.iov_len > wanted)
			part.iov_len = wanted;
		switch (a->program) {
		case __NR_sendmmsg:
		case __NR_recvmmsg:
			call = (struct fz_io_call){ a->program, { fd, (long)&slot, 1, flags } };
			break;
		case __NR_sendmsg:
		case __NR_recvmsg:
			call = (struct fz_io_call){ a->program, { fd, (long)&slot, flags } };
			break;
		case __NR_readv:
		case __NR_preadv2:
		case __NR_writev:
		case __NR_pwritev2:
			call = (struct fz_io_call){ a->program, { fd, (long)&part, 1, FZ_IO_CURPOS } };
			break;
		default:
			call.args[1] = (long)part.iov_base;
			call.args[2] = (long)part.iov_len;
			break;
		}
		ret = fz_io_make_announced(self, &call, FZ_CALL_CANCELLABLE | FZ_CALL_BEGUN);
		if (ret > 0 && (a->program == __NR_sendmmsg || a->program == __NR_recvmmsg))
			ret = slot.length;
		if (ret <= 0 || take_part(a, c, &slot.header, ret))
			return;
	}
}

int64_t fz_io_by_parts(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_io_cursor *c, size_t least)
{
	bool filled = false;

	/* Once there is enough, take what there is for the elements behind a full one. */
	while (c->count && (c->done < least || filled)) {
		const bool rest = c->done > 0;
		struct iovec element;
		int count;
		const struct iovec *iov = fz_io_cursor_rest(c, &element, &count);
		const bool plain = count == 1 && !a->room && (a->sends || !fz_io_looks_for_descriptors(a->info));
		struct fz_user_msghdr msg = message_of(a, iov, count);
		struct fz_io_attempt part = {
			.call = { a->sends ? __NR_sendmsg : __NR_recvmsg, { 0, (long)&msg } },
			.pin = a->pin,
			.info = a->info,
			.flags_at = plain ? 3 : 2,
			.flags = rest ? flags_of_rest(a) : a->flags,
			.sends = a->sends,
			.only_tries = c->done >= least,
			.stands_in = true,
			.program = a->program,
			.begun = rest,
			.rest = rest,
			.inside = rest && !a->sends,
			/* Behind a full element there may be more, which poll does not tell below SO_RCVLOWAT. */
			.refused = c->done < least && !filled,
			/* On a Unix socket SO_SNDTIMEO begins anew with each part. */
			.deadline = a->sends && a->info & FZ_FD_UNIX ? 0 : a->deadline,
		};
		int64_t ret;

		if (plain)
			part.call = (struct fz_io_call){ a->sends ? __NR_sendto : __NR_recvfrom,
							 { 0, (long)iov->iov_base, (long)iov->iov_len } };
		ret = fz_io_try_or_wait(self, &part);
		a->deadline = part.deadline;
		if (FZ_UNLIKELY(ret == FZ_OP_FORBIDDEN && rest))
			fz_io_rest_forbidden(self, a, c, least);
		if (ret <= 0)
			return c->done ? (int64_t)c->done : ret;
		filled = (size_t)ret == fz_io_total(iov, (size_t)count);
		if (take_part(a, c, &msg, ret))
			break;
	}
	return (int64_t)c->done;
}

size_t fz_io_rest_of_message(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_user_msghdr *msg,
			     size_t done, size_t least, bool forbidden)
{
	struct fz_io_cursor c = { .iov = msg->iov, .count = (int)msg->iov_count };

	a->message = msg;
	fz_io_cursor_advance(&c, done);
	if (has_descriptors(a, msg))
		return done;
	if (forbidden)
		fz_io_rest_forbidden(self, a, &c, least);
	else
		fz_io_by_parts(self, a, &c, least);
	return c.done;
}

/* ---- recvmmsg ------------------------------------------------------------ */

/*
 * Receive the messages that are there without waiting, then wait for readiness.  On a stream with MSG_WAITALL or SO_RCVLOWAT
 * one message after the other, each until enough is there.
 */

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
	int64_t ret = -EAGAIN;

	/* Leave an error in the socket for the program's next call: this call has messages to return. */
	if (a->begun && fz_io_is_broken(a))
		return -EPIPE;
	if (!a->only_waits || a->only_tries)
		ret = receive_present(fz_pin_fd(a->pin), slots, n, a->flags, l);
	if (ret != -EAGAIN || a->only_tries)
		return ret;
	a->call = (struct fz_io_call){ __NR_recvmmsg, { 0, (long)slots, 1 } };
	a->refused = !a->only_waits;
	return fz_io_try_or_wait(self, a);
}

/* Receive one message, of which the program's call waits for `least` bytes.  forbidden: see fz_io_rest_of_message(). */
static int64_t receive_enough(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_message_slot *slot,
			      size_t least, const struct limit *l, bool forbidden)
{
	int64_t ret;

	a->room = fz_sys_readable(&slot->header.control_len) ? slot->header.control_len : 0;
	a->only_waits = forbidden;
	ret = receive_some(self, a, slot, 1, l);
	/* A handler has ended the program's own call. */
	if (ret == 1 && !a->only_tries && !(forbidden && fz_signal_handled(self)))
		slot->length = (unsigned)fz_io_rest_of_message(self, a, &slot->header, slot->length, least,
							       forbidden);
	return ret;
}

static int64_t receive_messages(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
				int flags, void *timespec)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_message_slot *slots = (void *)vec;
	struct fz_io_attempt a = {
		.pin = &pin,
		.flags_at = 3,
		.flags = flags & ~FZ_MSG_WAITFORONE,
		.program = __NR_recvmmsg,
	};
	unsigned done = 0;
	struct limit limit;
	int wait = fz_io_may_wait(self, __NR_recvmmsg, fd, flags, &a.info);
	size_t least = fz_io_least(fd, a.info, flags, &wait);
	const bool forbidden = wait == FZ_OP_FORBIDDEN;
	const struct fz_io_call own = { __NR_recvmmsg, { fd, (long)vec, n, flags, (long)timespec } };
	int64_t ret = 0;

	if (forbidden && least == 1)
		return fz_io_make_own(self, &own, fd, true);
	if (least > 1 && fz_io_kernel_gathers(&a, &slots->header))
		return fz_io_make_announced(self, &own, FZ_CALL_UNDISTURBED | FZ_CALL_CANCELLABLE |
							(fz_io_attempt_deadline(&a) == FZ_FOREVER ? FZ_CALL_RESTARTS : 0));
	/* A bad descriptor, too, goes to the kernel, which checks the timeout first. */
	if (wait <= 0 && !forbidden)
		return fz_syscall5(__NR_recvmmsg, fd, (long)vec, n,
				   wait ? flags | FZ_MSG_DONTWAIT : flags, (long)timespec);
	ret = begin_limit(timespec, &limit);
	if (ret)
		return ret;
	fz_signal_mark(self);
	while (done < n) {
		a.begun = a.rest = done > 0;
		a.only_tries = a.begun && flags & FZ_MSG_WAITFORONE;
		/* SO_RCVTIMEO begins anew with each message. */
		a.deadline = 0;
		ret = least > 1 ? receive_enough(self, &a, &slots[done], least, &limit, forbidden) :
				  receive_some(self, &a, &slots[done], n - done, &limit);
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

int64_t fz_io_recvmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags, void *timespec)
{
	return FZ_IO_CALL(receive_messages(self, fd, vec, n, flags, timespec));
}
