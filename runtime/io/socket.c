/* SPDX-License-Identifier: MIT */
#include "runtime/io/socket.h"

#include <asm/errno.h>
#include <poll.h>

#include "runtime/io/fdtab.h"
#include "runtime/io/filter.h"
#include "runtime/io/io.h"

int fz_io_may_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info)
{
	int nonblocking;

	if (fz_fdtab_look_up(fd, ret_info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (fz_filter_forbids(number))
		return FZ_OP_FORBIDDEN;
	if (flags & (FZ_MSG_DONTWAIT | FZ_MSG_ERRQUEUE))
		return 0;
	/* Only the kernel knows the type, or the timeouts, if a filter forbids to ask for them. */
	if (*ret_info & FZ_FD_UNASKED ||
	    (FZ_UNLIKELY(*ret_info & (FZ_FD_RECV_TIMEOUT | FZ_FD_SEND_TIMEOUT)) &&
	     fz_sys_is_stream(fd) < 0))
		return FZ_OP_FORBIDDEN;
	if ((*ret_info & FZ_FD_KIND_MASK) != FZ_FD_SOCKET)
		return 0;
	nonblocking = fz_fdtab_nonblocking(fd, *ret_info);
	if (nonblocking < 0)
		return nonblocking == -EBADF ? -EBADF : FZ_OP_FORBIDDEN;
	return !nonblocking;
}

int64_t fz_io_make_at_once(struct fz_fiber *self, int wait, const struct fz_io_call *own)
{
	if (FZ_UNLIKELY(wait == FZ_OP_FORBIDDEN))
		return fz_io_make_own(self, own, (int)own->args[0], true);
	return wait ? wait : fz_io_make(own);
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
		bool restart, announces;
		int64_t ret = -EINPROGRESS;

		args[0] = fz_pin_fd(a->pin);
		args[a->flags_at] = a->flags | FZ_MSG_DONTWAIT;
		if (!a->only_waits)
			ret = fz_io_make(&a->call);
		if (a->stands_in && fz_sys_is_denied(ret, a->call.number, 0, 0, 0, 0, 0))
			return FZ_OP_FORBIDDEN;
		/* EINPROGRESS: the data has to open the connection first (TCP_FASTOPEN_CONNECT). */
		if (ret != -EINPROGRESS && (ret != -EAGAIN || a->only_tries))
			return ret;
		deadline = fz_io_attempt_deadline(a);
		/*
		 * With a timeout the call is not restarted after a handler, SA_RESTART or not:
		 * signal(7).
		 */
		restart = deadline == FZ_FOREVER && !a->begun;
		announces = ret == -EINPROGRESS || deadline == FZ_FD_ASK_KERNEL;
		ret = FZ_OP_FORBIDDEN;
		if (!announces &&
		    !fz_op_is_refused(fz_pin_fd(a->pin), (uint32_t)events, &refusals))
			ret = fz_io_wait_more(self, a->pin, events, deadline, restart, a->begun);
		if (ret == FZ_OP_FORBIDDEN && (announces || !a->stands_in)) {
			args[a->flags_at] = a->flags;
			return fz_io_make_announced(self, &a->call,
						    FZ_CALL_GOES_ON | FZ_CALL_CANCELLABLE |
							    (restart ? FZ_CALL_RESTARTS : 0));
		}
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
	}
}
