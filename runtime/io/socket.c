/* SPDX-License-Identifier: MIT */
#include "runtime/io/socket.h"

#include <asm/errno.h>
#include <poll.h>

#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"

int fz_io_may_wait(struct fz_fiber *self, int fd, int flags, uint32_t *ret_info)
{
	int nonblocking;

	if (fz_fdtab_look_up(fd, ret_info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (flags & (FZ_MSG_DONTWAIT | FZ_MSG_ERRQUEUE) ||
	    (*ret_info & FZ_FD_KIND_MASK) != FZ_FD_SOCKET)
		return 0;
	nonblocking = fz_fdtab_nonblocking(fd, *ret_info);
	return nonblocking < 0 ? nonblocking : !nonblocking;
}

fz_nsec fz_io_attempt_deadline(struct fz_io_attempt *a)
{
	if (!a->deadline)
		a->deadline = fz_fdtab_deadline(fz_pin_fd(a->pin), a->info, a->sends);
	return a->deadline;
}

int64_t fz_io_try_or_wait(struct fz_fiber *self, struct fz_io_attempt *a)
{
	const short events = a->sends ? POLLOUT : POLLIN;
	long *args = a->call.args;
	unsigned refusals = 0;

	fz_signal_mark(self);
	for (;;) {
		fz_nsec deadline;
		bool restart;
		int64_t ret = -EINPROGRESS;

		args[0] = fz_pin_fd(a->pin);
		args[a->flags_at] = a->flags | FZ_MSG_DONTWAIT;
		if (!a->only_waits)
			ret = fz_io_make(&a->call);
		/* EINPROGRESS: the data has to open the connection first (TCP_FASTOPEN_CONNECT). */
		if (ret != -EINPROGRESS && (ret != -EAGAIN || a->only_tries))
			return ret;
		deadline = fz_io_attempt_deadline(a);
		/*
		 * With a timeout the call is not restarted after a handler, SA_RESTART or not:
		 * signal(7).
		 */
		restart = deadline == FZ_FOREVER && !a->begun;
		if (ret == -EINPROGRESS || deadline == FZ_FD_ASK_KERNEL ||
		    fz_op_is_refused(fz_pin_fd(a->pin), (uint32_t)events, &refusals)) {
			args[a->flags_at] = a->flags;
			return fz_io_make_announced(self, &a->call,
						    FZ_CALL_GOES_ON | FZ_CALL_CANCELLABLE |
							    (restart ? FZ_CALL_RESTARTS : 0));
		}
		ret = fz_io_wait_more(self, a->pin, events, deadline, restart, a->begun);
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
	}
}

int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct fz_user_msghdr msg = { .iov = (struct iovec *)iov, .iov_count = (size_t)count };

	return fz_io_recvmsg(self, fd, (struct msghdr *)&msg, 0);
}

int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct fz_user_msghdr msg = { .iov = (struct iovec *)iov, .iov_count = (size_t)count };

	return fz_io_sendmsg(self, fd, (const struct msghdr *)&msg, 0);
}
