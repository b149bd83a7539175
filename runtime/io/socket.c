/* SPDX-License-Identifier: MIT */
#include "runtime/io/socket.h"

#include <asm/errno.h>
#include <poll.h>

#include "runtime/io/fdtab.h"
#include "runtime/backend/filter.h"
#include "runtime/io/io.h"

enum { OPTION_ERROR = 4 };

int fz_io_could_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info)
{
	if (fz_fdtab_look_up(fd, ret_info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (fz_filter_forbids(number))
		return FZ_OP_FORBIDDEN;
	if (flags & (FZ_MSG_DONTWAIT | FZ_MSG_ERRQUEUE))
		return 0;
	/*
	 * Only the kernel knows the type, or the timeouts, if a filter forbids to ask for them.
	 * relaxed: as in fz_filter_forbids().
	 */
	if (*ret_info & FZ_FD_UNASKED ||
	    (FZ_UNLIKELY(*ret_info & (FZ_FD_RECV_TIMEOUT | FZ_FD_SEND_TIMEOUT)) &&
	     atomic_load_explicit(&fz_filter_exists, memory_order_relaxed) &&
	     fz_sys_is_stream(fd) < 0))
		return FZ_OP_FORBIDDEN;
	return (*ret_info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET;
}

int fz_io_is_blocking(int fd, uint32_t info)
{
	const int nonblocking = fz_fdtab_nonblocking(fd, info);

	if (nonblocking < 0)
		return nonblocking == -EBADF ? -EBADF : FZ_OP_FORBIDDEN;
	return !nonblocking;
}

int fz_io_may_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info)
{
	const int ret = fz_io_could_wait(self, number, fd, flags, ret_info);

	return ret > 0 ? fz_io_is_blocking(fd, *ret_info) : ret;
}

int64_t fz_io_make_at_once(struct fz_fiber *self, int wait, const struct fz_io_call *own)
{
	if (FZ_UNLIKELY(wait == FZ_OP_FORBIDDEN))
		return fz_io_make_own(self, own, (int)own->args[0], true);
	return wait ? wait : fz_io_make(own);
}

fz_nsec fz_io_attempt_deadline(struct fz_io_attempt *a)
{
	const int fd = fz_pin_fd(a->pin);

	/* A hint may have been mended since the call began (runtime/io/hints.h). */
	if (!a->deadline || a->deadline == FZ_FOREVER)
		a->deadline = fz_fdtab_deadline(fd, a->info | fz_fdtab_get(fd), a->sends);
	return a->deadline;
}

/*
 * Make one attempt to send on a Unix socket.  While a call waits there, the end of the connection
 * gives it the socket's error, or EPIPE without a signal; a call that begins later gets EPIPE and
 * SIGPIPE.
 */
static int64_t try_on_unix_socket(struct fz_io_attempt *a)
{
	int64_t ret;
	int err;

	if (a->refused)
		a->call.args[a->flags_at] |= FZ_MSG_NOSIGNAL;
	ret = fz_io_make(&a->call);
	if (ret != -EPIPE || !a->refused)
		return ret;
	err = fz_sys_socket_option((int)a->call.args[0], OPTION_ERROR);
	return err > 0 ? -err : ret;
}

/*
 * Until when a wait for readiness may last.  poll tells nothing when a Unix socket without room is
 * shut down, or its peer is.
 */
static fz_nsec wait_limit(bool sends_on_unix, fz_nsec deadline)
{
	const fz_nsec next = sends_on_unix ? fz_now() + FZ_SEC / 10 : FZ_FOREVER;

	return next < deadline ? next : deadline;
}

int64_t fz_io_try_or_wait(struct fz_fiber *self, struct fz_io_attempt *a)
{
	const bool sends_on_unix = a->sends && a->info & FZ_FD_UNIX;
	const short events = a->sends ? POLLOUT : POLLIN;
	long *args = a->call.args;
	unsigned refusals = 0;

	if (!a->begun)
		fz_signal_mark(self);
	for (bool tries = !a->refused && !a->only_waits;; tries = !a->only_waits) {
		fz_nsec deadline, limit;
		bool restart, announces;
		int64_t ret = a->refused ? -EAGAIN : -EINPROGRESS;

		args[0] = fz_pin_fd(a->pin);
		args[a->flags_at] = a->flags | FZ_MSG_DONTWAIT;
		if (tries)
			ret = sends_on_unix ? try_on_unix_socket(a) : fz_io_make(&a->call);
		if (a->stands_in && fz_sys_is_denied(ret, a->call.number, 0, 0, 0, 0, 0))
			return FZ_OP_FORBIDDEN;
		/* EINPROGRESS: the data has to open the connection first (TCP_FASTOPEN_CONNECT). */
		if (ret != -EINPROGRESS && (ret != -EAGAIN || a->only_tries))
			return ret;
		deadline = fz_io_attempt_deadline(a);
		limit = wait_limit(sends_on_unix, deadline);
		a->refused = ret == -EAGAIN;
		/*
		 * With a timeout the call is not restarted after a handler, SA_RESTART or not:
		 * signal(7).
		 */
		restart = deadline == FZ_FOREVER && !a->begun;
		announces = ret == -EINPROGRESS || deadline == FZ_FD_ASK_KERNEL;
		ret = FZ_OP_FORBIDDEN;
		if (!announces &&
		    !fz_op_is_refused(fz_pin_fd(a->pin), (uint32_t)events, &refusals))
			ret = fz_io_wait_more(self, a->pin, events, limit, restart, a->begun);
		if (ret == FZ_OP_FORBIDDEN && (announces || !a->stands_in)) {
			args[a->flags_at] = a->flags;
			return fz_io_make_announced(self, &a->call,
						    FZ_CALL_GOES_ON | FZ_CALL_CANCELLABLE |
							    (a->begun ? FZ_CALL_BEGUN : 0) |
							    (restart ? FZ_CALL_RESTARTS : 0));
		}
		if (ret < 0 || (ret == 0 && limit == deadline))
			return ret ? ret : -EAGAIN;
		if (a->rest && !sends_on_unix && ret & (POLLERR | (a->sends ? POLLHUP : 0)))
			return -EPIPE;
	}
}
