/* SPDX-License-Identifier: MIT */
#include "runtime/io/socket.h"

#include <asm/errno.h>
#include <asm/ioctls.h>
#include <asm/socket.h>
#include <asm/sockios.h>
#include <fcntl.h>
#include <poll.h>

#include "runtime/backend/backend.h"
#include "runtime/backend/filter.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/io/io_internal.h"

enum {
	OPTION_ERROR = 4,
};

int fz_io_could_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info)
{
	if (fz_fdtab_look_up(fd, ret_info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (fz_filter_forbids(number))
		return FZ_OP_FORBIDDEN;
	/* Unix sockets have no error queue, and the kernel ignores the flag. */
	if (flags & FZ_MSG_DONTWAIT || (flags & FZ_MSG_ERRQUEUE && !(*ret_info & FZ_FD_UNIX)))
		return 0;
	/*
	 * Only the kernel knows the type, or the timeouts, if a filter forbids to ask for them.
	 * relaxed: as in fz_filter_forbids().
	 */
	if (*ret_info & FZ_FD_UNASKED ||
	    (FZ_UNLIKELY(*ret_info & FZ_FD_TIMEOUTS) &&
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

/* Begin the timeout.  From now on the attempt rests on the hints that there are. */
static void begin_timeout(struct fz_io_attempt *a)
{
	const uint32_t news = FZ_FD_TIMEOUTS | FZ_FD_RESTED_ON;
	const int fd = fz_pin_fd(a->pin);

	a->info = (a->info & ~(uint32_t)FZ_FD_RESTED_ON) | (fz_fdtab_get(fd) & news);
	a->deadline = fz_fdtab_deadline(fd, a->info, a->sends);
	a->pin->hinted = fz_fdtab_wait(fd, fz_fdtab_rests(a->info));
}

/*
 * The attempt has waited, or may have.  If a hint on which it rests has turned out to be wrong (runtime/io/hints.h), give
 * it the timeout that the socket has, or end it.
 */
static void mend_deadline(struct fz_io_attempt *a)
{
	const uint32_t hinted = a->pin->hinted;
	uint32_t wrong, nested;

	/* Such a call waits anew each 100 ms (wait_limit()): the monitor hardly meets one of these waits twice. */
	if (a->sends && a->info & FZ_FD_UNIX && !a->checked) {
		a->checked = true;
		nested = fz_bar_handlers();
		fz_fdtab_is_wrong(hinted);
		fz_allow_handlers(nested);
	}
	wrong = fz_fdtab_found_wrong(hinted);
	if (!wrong)
		return;
	a->pin->hinted = 0;
	a->info |= FZ_FD_TIMEOUTS;
	/* 1: the time is over. */
	a->deadline = wrong & FZ_FD_WAS_NONBLOCK ? 1 : fz_fdtab_deadline(fz_pin_fd(a->pin), a->info, a->sends);
}

fz_nsec fz_io_attempt_deadline(struct fz_io_attempt *a)
{
	if (!a->deadline)
		begin_timeout(a);
	else if (a->pin->hinted)
		mend_deadline(a);
	return a->deadline;
}

/*
 * Make one attempt to send on a Unix socket.  Natively, a call that waits when the connection ends
 * returns the socket's error, or EPIPE without SIGPIPE; a call that begins later gets EPIPE and
 * SIGPIPE.  So once the call has been refused and has waited, its attempts raise no SIGPIPE.
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
 * Returns until when a wait for readiness may last.  At most 100 ms for sending on a Unix socket: poll
 * does not report that a Unix socket without room, or its peer, has been shut down.
 */
static fz_nsec wait_limit(bool sends_on_unix, fz_nsec deadline)
{
	const fz_nsec next = sends_on_unix ? fz_now() + FZ_SEC / 10 : FZ_FOREVER;

	return next < deadline ? next : deadline;
}

/* ready: what poll says of the descriptor.  See fz_io_is_broken(). */
static bool is_broken(const struct fz_io_attempt *a, short ready)
{
	int unread = 0;

	if (!(ready & POLLERR))
		return false;
	/* A datagram comes after the error. */
	if (!(a->info & FZ_FD_STREAM))
		return true;
	/* On a stream what came before the error is received first.  Without POLLHUP only the error queue holds something. */
	return ready & POLLHUP &&
	       (fz_syscall3(__NR_ioctl, fz_pin_fd(a->pin), FIONREAD, (long)&unread) != 0 || !unread);
}

bool fz_io_is_broken(const struct fz_io_attempt *a)
{
	const long ready = fz_sys_poll_now(fz_pin_fd(a->pin), 0);

	return ready > 0 && is_broken(a, (short)ready);
}

/* Does what poll says of the descriptor end a call that has transferred a part? */
static bool ends_rest(const struct fz_io_attempt *a, short ready)
{
	/* On a Unix socket the next part takes the error, as natively the call does that has transferred a part. */
	if (a->info & FZ_FD_UNIX && (a->sends || a->inside))
		return false;
	/* With POLLERR alone the error queue holds something, which ends no call. */
	return a->sends ? ready & POLLHUP : is_broken(a, ready);
}

bool fz_io_is_at_mark(const struct fz_io_attempt *a)
{
	int marked = 0;

	return fz_io_may_look() && fz_syscall3(__NR_ioctl, fz_pin_fd(a->pin), SIOCATMARK, (long)&marked) == 0 && marked;
}

/*
 * The time for a wait on a socket with SO_RCVLOWAT is over.  Below that mark poll says nothing, but natively the call then
 * takes what is there.
 */
static int64_t end_below_mark(struct fz_io_attempt *a)
{
	int64_t ret;

	a->call.args[0] = fz_pin_fd(a->pin);
	ret = fz_io_make(&a->call);
	return a->stands_in && fz_sys_is_denied(ret, a->call.number, 0, 0, 0, 0, 0) ? -EAGAIN : ret;
}

int64_t fz_io_try_or_wait(struct fz_fiber *self, struct fz_io_attempt *a)
{
	const bool sends_on_unix = a->sends && a->info & FZ_FD_UNIX;
	/* Before bytes are behind the mark, poll says POLLPRI there, but not POLLIN. */
	short events = a->sends ? POLLOUT : a->inside ? POLLIN | POLLPRI : POLLIN;
	long *args = a->call.args;
	unsigned refusals = 0;

	if (!a->begun)
		fz_signal_mark(self);
	for (bool tries = !a->refused && !a->only_waits;; tries = !a->only_waits) {
		fz_nsec deadline, limit;
		bool restart, announces;
		int64_t ret = a->refused ? -EAGAIN : -EINPROGRESS;

		if (a->inside && fz_io_is_at_mark(a))
			return -EPIPE;
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
		/* With a timeout the call is not restarted after a handler, SA_RESTART or not: signal(7). */
		restart = deadline == FZ_FOREVER && !a->begun;
		announces = ret == -EINPROGRESS || deadline == FZ_FD_ASK_KERNEL;
		ret = FZ_OP_FORBIDDEN;
		if (!announces &&
		    !fz_op_is_refused(fz_pin_fd(a->pin), (uint32_t)events, &refusals))
			ret = fz_io_wait_more(self, a->pin, events, limit, restart, a->begun);
		if (ret == FZ_OP_FORBIDDEN && (announces || !a->stands_in)) {
			args[a->flags_at] = a->flags;
			/* A handler that ran before the first attempt ran before the call. */
			return fz_io_make_announced(self, &a->call,
						    (tries || a->begun ? FZ_CALL_GOES_ON : 0) |
							    FZ_CALL_CANCELLABLE |
							    (a->begun ? FZ_CALL_BEGUN : 0) |
							    (restart ? FZ_CALL_RESTARTS : 0));
		}
		if (ret == 0 && limit == deadline)
			return !a->sends && a->info & FZ_FD_LOW_WATER ? end_below_mark(a) : -EAGAIN;
		if (ret < 0)
			return ret;
		if (a->rest && ends_rest(a, (short)ret))
			return -EPIPE;
		/* POLLPRI stays for a mark that is before or behind the call: wait for bytes alone. */
		if (!(ret & POLLIN))
			events &= ~POLLPRI;
	}
}

/* ---- accept and connect ------------------------------------------------- */

static int accept_once(struct fz_fiber *self, long number, int fd, void *addr, uint32_t *addr_len,
		       int flags)
{
	const struct fz_io_call own = { number, { fd, (long)addr, (long)addr_len, flags } };
	uint32_t info, inherited;
	int wait = fz_io_may_wait(self, number, fd, 0, &info);
	int64_t ret;

	if (wait == -EBADF)
		return wait;
	if (wait > 0) {
		struct fz_op op = {
			.opcode = IORING_OP_ACCEPT,
			.hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info)),
			.fd = fd,
			.addr = (uintptr_t)addr,
			.off = (uintptr_t)addr_len,
			.op_flags = (uint32_t)flags,
		};
		fz_nsec deadline = fz_fdtab_deadline(fd, info, false);

		if (deadline == FZ_FD_ASK_KERNEL) {
			ret = fz_io_make_own(self, &own, fd, true);
		} else {
			ret = fz_io_run(self, &op, deadline, -EAGAIN, deadline == FZ_FOREVER);
			if (ret == FZ_OP_FORBIDDEN)
				ret = fz_io_make_own(self, &own, fd, deadline == FZ_FOREVER);
		}
	} else {
		ret = fz_io_make_at_once(self, wait, &own);
	}
	if (ret >= 0) {
		/* The kernel copies the listener's kind and options to the accepted socket. */
		inherited = info & (FZ_FD_TIMEOUTS | FZ_FD_LOW_WATER |
				    FZ_FD_STREAM | FZ_FD_UNIX);
		fz_fdtab_set((int)ret, FZ_FD_SOCKET | FZ_FD_OURS | inherited |
					       (flags & O_NONBLOCK ? FZ_FD_NONBLOCK : 0));
	}
	return (int)ret;
}

int fz_io_accept(struct fz_fiber *self, long number, int fd, void *addr, uint32_t *addr_len,
		 int flags)
{
	return (int)FZ_IO_CALL(accept_once(self, number, fd, addr, addr_len, flags));
}

static int connect_at_once(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len,
			   fz_nsec deadline)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_CANCELLABLE | FZ_CALL_BRIEF);
	int64_t ret;

	do {
		ret = fz_syscall3(__NR_connect, fd, (long)addr, addr_len);
		/* Each attempt has the whole timeout (SO_SNDTIMEO): make none past the deadline. */
		if (ret == -EINTR && !fz_call_handled(&call) && fz_now() >= deadline)
			ret = -EAGAIN;
	} while (fz_call_again(&call, ret));
	fz_call_end(&call, ret);
	return (int)ret;
}

/*
 * A connection attempt is under way: wait for its end, which the program's call, made now, answers with, as it does
 * natively.  Where nothing else may wait, that call waits.  Returns 0 or -errno.
 */
static int await_connection(struct fz_fiber *self, struct fz_pin *pin, const void *addr, uint32_t addr_len,
			    fz_nsec deadline)
{
	int64_t ret;

	fz_signal_mark(self);
	ret = fz_io_wait_ready(self, pin, POLLOUT, deadline, deadline == FZ_FOREVER);
	if (ret == 0)
		return -EALREADY;
	if (ret < 0 && ret != FZ_OP_FORBIDDEN)
		return (int)ret;
	return connect_at_once(self, fz_pin_fd(pin), addr, addr_len, deadline);
}

static int connect_once(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_op op = {
		.opcode = IORING_OP_CONNECT,
		.fd = fd,
		.pin = &pin,
		.addr = (uintptr_t)addr,
		.off = addr_len,
	};
	fz_nsec deadline;
	uint32_t info;
	int64_t ret;
	int wait = fz_io_may_wait(self, __NR_connect, fd, 0, &info);

	if (wait == -EBADF)
		return wait;
	op.hinted = pin.hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info));
	deadline = fz_fdtab_deadline(fd, info, true);
	/*
	 * A Unix socket waits only for room in the listener's queue, and no poll tells when there
	 * is some: make the real call; if it waits, the monitor preempts.  connect on a socket that is
	 * no stream never waits; the real call leaves such a socket unchanged if it fails.
	 */
	if (wait <= 0 || deadline == FZ_FD_ASK_KERNEL || addr_len < sizeof(uint16_t) ||
	    !(info & FZ_FD_STREAM) || fz_sys_is_unix(fd) != 0)
		return connect_at_once(self, fd, addr, addr_len, deadline);
	ret = fz_io_run(self, &op, deadline, -EINPROGRESS, deadline == FZ_FOREVER);
	if (ret == FZ_OP_FORBIDDEN)
		return connect_at_once(self, fd, addr, addr_len, deadline);
	/* An earlier attempt is under way, for example after a handler with SA_RESTART.  Only the real call has waited for it. */
	if (ret == -EALREADY && fz_backend_kind() == FZ_BACKEND_RING)
		return await_connection(self, &pin, addr, addr_len, deadline);
	/*
	 * After a failure the ring, unlike the system call, leaves the socket half connected: undo
	 * that by a connect to AF_UNSPEC.
	 */
	if (fz_backend_kind() == FZ_BACKEND_RING && ret < 0 && ret != -EINPROGRESS && ret != -EALREADY &&
	    ret != -EINTR && ret != FZ_OP_ANEW && ret != -EISCONN && ret != -EBADF && ret != -EFAULT &&
	    ret != -EINVAL) {
		const uint16_t unspecified[8] = { 0 };

		fz_syscall3(__NR_connect, fz_pin_fd(&pin), (long)unspecified, sizeof(unspecified));
	}
	return (int)ret;
}

int fz_io_connect(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len)
{
	return (int)FZ_IO_CALL(connect_once(self, fd, addr, addr_len));
}
