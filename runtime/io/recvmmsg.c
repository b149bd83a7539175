/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/recvmmsg.c - receive several messages: those that are there without waiting, then wait for readiness.  On a
 * stream with MSG_WAITALL or SO_RCVLOWAT one message after the other, each until enough is there.
 */
#include "runtime/io/io_internal.h"

#include <poll.h>

#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/socket.h"

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
	int64_t ret = -EAGAIN;

	/* Leave an error in the socket for the program's next call: this call has messages to return. */
	if (a->begun && fz_io_poll_now(self, __NR_ppoll, &p, 1) > 0 && fz_io_is_broken(a, p.revents))
		return -EPIPE;
	if (!a->only_waits || a->only_tries)
		ret = receive_present(p.fd, slots, n, a->flags, l);
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
	/* Only the kernel gathers bytes that it leaves where they are, and ancillary data. */
	const bool kernel_gathers = a->flags & FZ_MSG_PEEK || fz_io_has_control(&slot->header);
	int64_t ret;

	a->only_waits = forbidden || kernel_gathers;
	ret = receive_some(self, a, slot, 1, l);
	/* A handler has ended the program's own call. */
	if (ret == 1 && !a->only_tries && !kernel_gathers && !(forbidden && fz_signal_handled(self)))
		slot->length = (unsigned)fz_io_rest_of_message(self, a, &slot->header, slot->length, least,
							       forbidden);
	return ret;
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
		.program = __NR_recvmmsg,
	};
	unsigned done = 0;
	struct limit limit;
	int wait = fz_io_may_wait(self, __NR_recvmmsg, fd, flags, &a.info);
	const bool forbidden = wait == FZ_OP_FORBIDDEN;
	size_t least = wait > 0 || forbidden ? fz_io_least(fd, a.info, flags) : 1;
	int64_t ret = 0;

	if (forbidden && least == 1) {
		a.call = (struct fz_io_call){ __NR_recvmmsg,
					      { fd, (long)vec, n, flags, (long)timespec } };
		return fz_io_make_own(self, &a.call, fd, true);
	}
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
