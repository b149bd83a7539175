/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/rest.c - a call on a stream socket that must be whole goes on after a part: a call that sends, and one that
 * receives with MSG_WAITALL or SO_RCVLOWAT.
 *
 * The count of the part must be returned.  So a handler, a timeout or an error ends the call, and a cancellation does,
 * too: the thread's next call acts on it.  The next call also gets the error.
 */
#include "runtime/io/socket.h"

#include <asm/socket.h>
#include <poll.h>

#include "runtime/base/time.h"
#include "runtime/io/io_internal.h"

size_t fz_io_least(int fd, uint32_t info, int flags)
{
	int least;

	/* Only streams honour MSG_WAITALL; the ring would also join records of SOCK_SEQPACKET. */
	if (FZ_LIKELY(!(flags & FZ_MSG_WAITALL) && !(info & FZ_FD_LOW_WATER)) || !(info & FZ_FD_STREAM) ||
	    flags & FZ_MSG_OOB)
		return 1;
	if (flags & FZ_MSG_WAITALL)
		return SIZE_MAX;
	least = fz_sys_socket_option(fd, SO_RCVLOWAT);
	return least > 1 ? (size_t)least : 1;
}

/* Does the call go on after a part, from which `handlers` was read before? */
static bool goes_on(struct fz_fiber *self, struct fz_io_attempt *a, uint32_t handlers)
{
	const fz_nsec deadline = fz_io_attempt_deadline(a);
	long ready;

	/* Each call has the whole timeout: make none past the deadline. */
	if (handlers != self->sig.handlers_run || (deadline != FZ_FOREVER && fz_now() >= deadline))
		return false;
	ready = a->sends ? 0 : fz_sys_poll_now(fz_pin_fd(a->pin), 0);
	return ready <= 0 || !(ready & POLLERR);
}

int64_t fz_io_rest_forbidden(struct fz_fiber *self, struct fz_io_attempt *a, char *buf, size_t n)
{
	const int fd = fz_pin_fd(a->pin);
	struct iovec part;
	struct fz_message_slot slot = { .header = { .iov = &part, .iov_count = 1 } };
	const uint32_t handlers = self->sig.handlers_run;
	const long flags = a->flags | (a->sends ? FZ_MSG_NOSIGNAL : 0);
	size_t done = 0;

	while (done < n && goes_on(self, a, handlers)) {
		const long at = (long)(buf + done), left = (long)(n - done);
		struct fz_io_call call = { a->program, { fd, at, left, flags } };
		int64_t ret;

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
			break;
		}
		part = (struct iovec){ .iov_base = (void *)at, .iov_len = (size_t)left };
		ret = fz_io_make_announced(self, &call, FZ_CALL_CANCELLABLE | FZ_CALL_BEGUN);
		if (ret > 0 && (a->program == __NR_sendmmsg || a->program == __NR_recvmmsg))
			ret = slot.length;
		if (ret <= 0)
			return done ? (int64_t)done : ret;
		done += (size_t)ret;
	}
	return (int64_t)done;
}

int64_t fz_io_by_parts(struct fz_fiber *self, struct fz_io_attempt *a, char *buf, size_t n, size_t least,
		       bool begun)
{
	size_t done = 0;

	do {
		const bool rest = begun || done;
		struct fz_io_attempt part = {
			.call = { a->sends ? __NR_sendto : __NR_recvfrom,
				  { 0, (long)(buf + done), (long)(n - done) } },
			.pin = a->pin,
			.info = a->info,
			.flags_at = 3,
			.flags = a->flags | (a->sends && rest ? FZ_MSG_NOSIGNAL : 0),
			.sends = a->sends,
			.only_tries = !least,
			.stands_in = true,
			.program = a->program,
			.begun = rest,
			.rest = rest,
			.refused = least > 0,
			/* On a Unix socket SO_SNDTIMEO begins anew with each part. */
			.deadline = a->sends && a->info & FZ_FD_UNIX ? 0 : a->deadline,
		};
		int64_t ret = fz_io_try_or_wait(self, &part);

		a->deadline = part.deadline;
		if (FZ_UNLIKELY(ret == FZ_OP_FORBIDDEN && rest))
			ret = fz_io_rest_forbidden(self, a, buf + done, least > done ? least - done : 0);
		if (ret <= 0)
			return done ? (int64_t)done : ret;
		done += (size_t)ret;
	} while (done < least);
	return (int64_t)done;
}

size_t fz_io_message_size(const struct fz_user_msghdr *msg)
{
	size_t total = 0;

	for (size_t i = 0; i < msg->iov_count && total < FZ_IO_MAX; i++)
		total += fz_io_clamp(msg->iov[i].iov_len);
	return fz_io_clamp(total);
}

size_t fz_io_rest_of_message(struct fz_fiber *self, struct fz_io_attempt *a, const struct fz_user_msghdr *msg,
			     size_t done, size_t least, bool forbidden)
{
	const size_t total = fz_io_message_size(msg);
	size_t skip = done;

	for (size_t i = 0; i < msg->iov_count && done < total; i++) {
		const struct iovec *iov = &msg->iov[i];
		size_t n, wanted;
		int64_t ret;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		n = iov->iov_len - skip < total - done ? iov->iov_len - skip : total - done;
		wanted = least <= done ? 0 : least - done < n ? least - done : n;
		ret = forbidden ? fz_io_rest_forbidden(self, a, (char *)iov->iov_base + skip, wanted) :
				  fz_io_by_parts(self, a, (char *)iov->iov_base + skip, n, wanted, true);
		if (ret <= 0)
			break;
		done += (size_t)ret;
		if ((size_t)ret < n)
			break;
		skip = 0;
	}
	return done;
}
