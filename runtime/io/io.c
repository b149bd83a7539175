/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/io.c - read and write, by kind of descriptor:
 *
 *	socket	runtime/io/socket.c
 *	pipe	try without waiting, then the ring (read), or readiness (write)
 *	FIFO	the real call once it is ready (read), or announced unless it is (write)
 *	file	runtime/io/file.c
 *	anonymous inode (eventfd and the like)
 *		try without waiting, then readiness
 *	other	the real call, announced unless it is ready: a terminal may answer
 *		without ever becoming ready (VMIN, VTIME)
 */
#include "runtime/io/io_internal.h"

#include <fcntl.h>
#include <poll.h>

#include "runtime/sched/announce.h"
#include "runtime/backend/backend.h"
#include "runtime/base/features.h"
#include "runtime/base/host.h"
#include "runtime/io/file.h"
#include "runtime/io/real_call.h"
#include "runtime/io/socket.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/base/sys.h"
#include "runtime/base/uapi.h"

void fz_io_test_cancel(struct fz_fiber *self)
{
	if (FZ_UNLIKELY(fz_cancel_requested(self)))
		fz_host.test_cancel();
}

void fz_io_take_turns(struct fz_fiber *self)
{
	enum { EVERY = 64 };

	if (FZ_UNLIKELY(++self->call.reads % EVERY == 0))
		fz_sched_take_turns(self);
}

int64_t fz_io_run(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart)
{
	for (;;) {
		int ret;

		fz_signal_mark(self);
		ret = fz_op_wait(self, op, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL);
		switch (ret) {
		case FZ_OP_TIMEOUT:
			return timeout_error;
		case FZ_OP_SIGNAL:
			if (restart && fz_signal_restarts(self))
				continue;
			return -EINTR;
		case FZ_OP_CANCEL:
			/* relaxed: our own. */
			if (atomic_load_explicit(&self->cancel.deferred, memory_order_relaxed))
				return -ECANCELED;
			fz_host.test_cancel();
			continue;
		case -EINTR:
			/* A worker thread of the ring was disturbed, not we. */
			continue;
		default:
			return ret;
		}
	}
}

int fz_io_wait_ready(struct fz_fiber *self, struct fz_pin *pin, short events,
		     fz_nsec deadline, bool restart)
{
	struct fz_op op = {
		.opcode = IORING_OP_POLL_ADD,
		.fd = pin->number,
		.pin = pin,
		.op_flags = (uint16_t)events,
	};
	int64_t ret;

	do {
		uint32_t none_run = fz_signal_none_run(self);

		ret = fz_io_run(self, &op, deadline, 0, restart);
		/*
		 * Of a file with two wait queues (a FIFO opened for both, a terminal) when
		 * what was there is gone before the kernel looks: it begins again and finds its
		 * own second queue taken (io_uring/poll.c, 5.8 to 6.18 at least).
		 */
		if (ret == -EINVAL) {
			struct pollfd p = { .fd = fz_pin_fd(pin), .events = events };

			ret = fz_io_poll_announced(self, &p, 1, deadline, none_run);
		}
	} while (ret == -EINTR && restart && fz_signal_restarts(self));
	return ret > 0 ? 1 : (int)ret;
}

int fz_io_wait_more(struct fz_fiber *self, struct fz_pin *pin, short events,
		    fz_nsec deadline, bool restart, bool begun)
{
	int ret;

	if (begun)
		fz_cancel_defer(self);
	ret = fz_io_wait_ready(self, pin, events, deadline, restart);
	if (begun)
		fz_cancel_undefer(self);
	return ret;
}

int fz_io_await_child(struct fz_fiber *self, int type, int id, int options)
{
	const int keep = 0x1000000; /* WNOWAIT */
	struct fz_op op = {
		.opcode = FZ_UAPI_OP_WAITID,
		.fd = id,
		.len = (uint32_t)type,
		.file_index = (uint32_t)(options | keep),
	};
	int64_t ret;

	if (fz_backend_kind() != FZ_BACKEND_RING || !fz_ring_knows(FZ_UAPI_OP_WAITID))
		return 0;
	ret = fz_io_run(self, &op, FZ_FOREVER, 0, true);
	/*
	 * Also said if the kernel thread that submitted it has ended: then a worker of the
	 * kernel looks, for children of its own (tests/programs/signal/signal_churn.c).
	 */
	if (ret == -ECHILD)
		return 0;
	return ret < 0 ? (int)ret : 1;
}

void fz_io_raise_sigpipe(void)
{
	const int sigpipe = 13, user = 0;
	struct fz_fiber *self = fz_self();
	struct fz_siginfo info = fz_signal_info(sigpipe, user, 0);

	if (self->mask & fz_signal_bit(sigpipe))
		fz_signal_send(self, sigpipe, &info, false);
	else
		fz_signal_send_here(self, sigpipe, &info);
}

static int64_t try_readv(int fd, const struct iovec *iov, int count, int64_t offset)
{
	if (!fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT))
		return -EOPNOTSUPP;
	return fz_syscall6(__NR_preadv2, fd, (long)iov, count, offset, 0, RWF_NOWAIT);
}

static int64_t real_readv(int fd, const struct iovec *iov, int count, int64_t offset)
{
	if (offset == FZ_IO_CURPOS)
		return fz_syscall3(__NR_readv, fd, (long)iov, count);
	return fz_syscall5(__NR_preadv, fd, (long)iov, count, offset, 0);
}

/* Readable now, or an error to be had: the real call does not wait. */
static bool ready_now(int fd, short events)
{
	return fz_sys_poll_now(fd, events) != 0;
}

/* A cancellation ends it. */
static int64_t cancellable_readv(struct fz_fiber *self, int fd, const struct iovec *iov,
				 int count)
{
	bool changed = fz_cancel_begin_call(self);
	int64_t ret = real_readv(fd, iov, count, FZ_IO_CURPOS);

	fz_cancel_end_call(self, changed);
	return ret;
}

static int64_t read_other(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct fz_real_call call;
	int64_t ret;

	if (ready_now(fd, POLLIN))
		return cancellable_readv(self, fd, iov, count);
	call = fz_call_begin(self, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE);
	do
		ret = real_readv(fd, iov, count, FZ_IO_CURPOS);
	while (fz_call_again(&call, ret));
	return ret;
}

static int64_t read_anonymous(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);

	for (;;) {
		int64_t ret;

		fd = fz_pin_fd(&pin);
		ret = try_readv(fd, iov, count, FZ_IO_CURPOS);
		/* Not ready, it may still be an error: only the real call knows. */
		if (fz_io_cannot_try(ret))
			return read_other(self, fd, iov, count);
		/* An error, too: the attempt may have taken what was there (eventfd, timerfd). */
		if (ret != -EAGAIN)
			return ret;
		ret = fz_io_wait_ready(self, &pin, POLLIN, FZ_FOREVER, true);
		if (ret < 0)
			return ret;
	}
}

static int64_t read_by_ring(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct fz_op op = {
		.opcode = count == 1 ? IORING_OP_READ : IORING_OP_READV,
		.fd = fd,
		.off = (uint64_t)FZ_IO_CURPOS,
		.addr = count == 1 ? (uintptr_t)iov->iov_base : (uintptr_t)iov,
		.len = count == 1 ? fz_io_clamp(iov->iov_len) : (uint32_t)count,
	};

	return fz_io_run(self, &op, FZ_FOREVER, 0, true);
}

/*
 * Nothing is there, and somebody may still write it?  A FIFO that was opened before it had
 * a writer, and never had one, is at its end, and poll does not say so.  Moving a byte
 * to where nothing can be stored does, without waiting, and leaves it where it is.
 */
static bool fifo_waits(int fd)
{
	static const char nowhere;
	const struct iovec iov = { .iov_base = (void *)&nowhere, .iov_len = 1 };

	if (ready_now(fd, POLLIN))
		return false;
	switch (fz_syscall3(__NR_fcntl, fd, F_GETFL, 0) & O_ACCMODE) {
	case O_RDONLY:
		return fz_syscall4(__NR_vmsplice, fd, (long)&iov, 1, SPLICE_F_NONBLOCK) ==
		       -EAGAIN;
	case O_RDWR:
		/* The other way the byte would go in; but it has a writer. */
		return true;
	default:
		return false;
	}
}

/* Which file a descriptor is; no inode if it is closed. */
struct identity {
	uint64_t inode;
	uint32_t major, minor;
};

static struct identity identity_of(int fd)
{
	enum { AT_EMPTY = 0x1000 };
	struct statx st;

	if (fz_syscall5(__NR_statx, fd, (long)"", AT_EMPTY, STATX_INO, (long)&st))
		return (struct identity){ 0 };
	return (struct identity){ st.stx_ino, st.stx_dev_major, st.stx_dev_minor };
}

static bool is_same(struct identity a, struct identity b)
{
	return a.inode && a.inode == b.inode && a.major == b.major && a.minor == b.minor;
}

/* Nothing is asked for, or it is an error: the kernel says so at once. */
static bool asks_for_nothing(const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		if (!fz_sys_readable(&iov[i].iov_len))
			return true;
		if (iov[i].iov_len)
			return false;
	}
	return true;
}

/*
 * What cannot be tried without waiting: opened by name, or spliced, or the kernel is old.
 * The ring would have a worker thread read it, which has a reference to the open file
 * when the read is over, so that a writer finds a reader after close()
 * (tests/programs/io/io_fifo.c).
 */
static int64_t read_fifo(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct identity file = { 0 };
	int64_t ret;

	while (!asks_for_nothing(iov, count) && fifo_waits(fd)) {
		if (!file.inode)
			file = identity_of(fd);
		ret = fz_io_wait_ready(self, &pin, POLLIN, FZ_FOREVER, true);
		if (ret < 0)
			return ret;
		fd = fz_pin_fd(&pin);
		/*
		 * Another thread has closed it while poll's real call waited, and the number
		 * may be another file's.
		 */
		if (!is_same(file, identity_of(fd)))
			return -EBADF;
	}
	/* Somebody else may be faster. */
	fz_announce_brief(self);
	ret = cancellable_readv(self, fd, iov, count);
	fz_announce_end(self);
	return ret;
}

static int64_t read_pipe(struct fz_fiber *self, int fd, uint32_t info,
			 const struct iovec *iov, int count)
{
	int64_t ret;

	if (info & FZ_FD_FIFO)
		return read_fifo(self, fd, iov, count);
	/* What waited last time is likely to wait again: save the attempt. */
	if (!(info & FZ_FD_RECV_WAITED)) {
		ret = try_readv(fd, iov, count, FZ_IO_CURPOS);
		if (fz_io_cannot_try(ret)) {
			fz_fdtab_change(fd, 0, FZ_FD_FIFO);
			return read_fifo(self, fd, iov, count);
		}
		if (ret != -EAGAIN)
			return ret;
		fz_fdtab_change(fd, 0, FZ_FD_RECV_WAITED);
	} else {
		/* Every other time, so that a change of habit is noticed. */
		fz_fdtab_change(fd, FZ_FD_RECV_WAITED, 0);
	}
	return read_by_ring(self, fd, iov, count);
}

static int64_t read_common(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	uint32_t info;
	int nonblocking;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET) {
		/* Unlike recvmsg, it does not ask the socket. */
		if (asks_for_nothing(iov, count))
			return real_readv(fd, iov, count, FZ_IO_CURPOS);
		return fz_io_socket_readv(self, fd, iov, count);
	}
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return fz_io_file_read(self, fd, info, iov, count, FZ_IO_CURPOS);
	nonblocking = fz_fdtab_nonblocking(fd, info);
	if (nonblocking < 0)
		return -EBADF;
	if (nonblocking)
		return real_readv(fd, iov, count, FZ_IO_CURPOS);
	fz_io_take_turns(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return read_pipe(self, fd, info, iov, count);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_ANONYMOUS)
		return read_anonymous(self, fd, iov, count);
	return read_other(self, fd, iov, count);
}

int64_t fz_io_read(struct fz_fiber *self, int fd, void *buf, size_t n)
{
	struct iovec iov = { .iov_base = buf, .iov_len = n };
	int64_t ret;

	/* Of a socket as well: not what recv answers. */
	if (n == 0 || n > FZ_IO_MAX) {
		fz_io_test_cancel(self);
		return fz_syscall3(__NR_read, fd, (long)buf, (long)n);
	}
	if ((fz_fdtab_get(fd) & FZ_FD_KIND_MASK) == FZ_FD_SOCKET) {
		ret = fz_io_recv(self, fd, buf, n, 0);
		if (ret != -ENOTSOCK)
			return ret;
		fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	}
	return read_common(self, fd, &iov, 1);
}

int64_t fz_io_readv(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	/* Nothing to do, or an error: neither waits. */
	if (fz_io_bad_vector(iov, count))
		return real_readv(fd, iov, count, FZ_IO_CURPOS);
	return read_common(self, fd, iov, count);
}

int64_t fz_io_preadv(struct fz_fiber *self, int fd, const struct iovec *iov, int count,
		     int64_t offset)
{
	uint32_t info;

	if (fz_fdtab_look_up(fd, &info))
		return offset < 0 ? -EINVAL : -EBADF;
	fz_io_test_cancel(self);
	if (offset < 0 || fz_io_bad_vector(iov, count) || (info & FZ_FD_KIND_MASK) != FZ_FD_FILE)
		return fz_syscall5(__NR_preadv, fd, (long)iov, count, offset, 0);
	return fz_io_file_read(self, fd, info, iov, count, offset);
}

int64_t fz_io_pread(struct fz_fiber *self, int fd, void *buf, size_t n, int64_t offset)
{
	struct iovec iov = { .iov_base = buf, .iov_len = n };
	uint32_t info;

	if (fz_fdtab_look_up(fd, &info))
		return offset < 0 ? -EINVAL : -EBADF;
	fz_io_test_cancel(self);
	if (offset < 0 || n > FZ_IO_MAX || (info & FZ_FD_KIND_MASK) != FZ_FD_FILE)
		return fz_syscall4(__NR_pread64, fd, (long)buf, (long)n, offset);
	return fz_io_file_read(self, fd, info, &iov, 1, offset);
}

/* ---- write -------------------------------------------------------------- */

static int64_t try_write(int fd, const struct fz_io_cursor *c)
{
	struct iovec part;

	if (!fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT))
		return -EOPNOTSUPP;
	return fz_syscall6(__NR_pwritev2, fd, (long)fz_io_cursor_rest(c, &part),
			   c->skip ? 1 : c->count, -1, -1, RWF_NOWAIT);
}

/* A cancellation ends it. */
static int64_t cancellable_writev(struct fz_fiber *self, int fd, const struct iovec *iov,
				  int count)
{
	bool changed = fz_cancel_begin_call(self);
	int64_t ret = fz_syscall3(__NR_writev, fd, (long)iov, count);

	fz_cancel_end_call(self, changed);
	return ret;
}

/*
 * Poll calls a pipe ready while it has a page to spare.  Without, what is written may still
 * go to the end of the last page, so waiting until it is ready is not for us.
 */
static int64_t write_fifo(struct fz_fiber *self, int fd, struct fz_io_cursor c)
{
	const uint32_t handlers = self->sig.handlers_run;
	int64_t total = 0, ret;

	fz_signal_mark(self);
	do {
		struct iovec part;
		const struct iovec *rest = fz_io_cursor_rest(&c, &part);
		int count = c.skip ? 1 : c.count;

		if (count == 1 && rest->iov_len <= PIPE_BUF && ready_now(fd, POLLOUT))
			fz_announce_brief(self);
		else
			fz_announce(self);
		ret = cancellable_writev(self, fd, rest, count);
		fz_io_announce_end(self, ret);
		if (ret > 0) {
			total += ret;
			fz_io_cursor_advance(&c, (size_t)ret);
		} else if (ret != -EINTR || total) {
			break;
		} else if (self->sig.handlers_run != handlers && !fz_signal_restarts(self)) {
			return ret;
		}
		/*
		 * Short: interrupted by a handler, or only because a request of this kernel
		 * thread has completed.
		 */
	} while (c.count && (!total || self->sig.handlers_run == handlers));
	return total ? total : ret;
}

/*
 * Blocking writes to a pipe write everything.  Up to PIPE_BUF bytes go in one
 * piece or not at all without our doing, also when nobody may wait.
 */
static int64_t write_pipe(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_cursor c = { .iov = iov, .count = count };
	int64_t total = 0;

	do {
		int64_t ret = try_write(fz_pin_fd(&pin), &c);

		if (ret > 0) {
			total += ret;
			fz_io_cursor_advance(&c, (size_t)ret);
			continue;
		}
		/* What was spliced meanwhile is a FIFO as well. */
		if (fz_io_cannot_try(ret)) {
			ret = write_fifo(self, fz_pin_fd(&pin), c);
			return ret > 0 ? total + ret : total ? total : ret;
		}
		if (ret != -EAGAIN)
			return total ? total : ret;
		ret = fz_io_wait_more(self, &pin, POLLOUT, FZ_FOREVER, true, total > 0);
		if (ret < 0)
			return total ? total : ret;
	} while (c.count);
	return total;
}

static int64_t write_common(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	struct fz_real_call call;
	int64_t ret;
	uint32_t info;
	int nonblocking;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET)
		return fz_io_socket_writev(self, fd, iov, count);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return fz_io_file_write(self, fd, info, iov, count, FZ_IO_CURPOS, 0);
	nonblocking = fz_fdtab_nonblocking(fd, info);
	if (nonblocking < 0)
		return -EBADF;
	if (!nonblocking && (info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return write_pipe(self, fd, iov, count);
	if (nonblocking || ready_now(fd, POLLOUT))
		return cancellable_writev(self, fd, iov, count);
	call = fz_call_begin(self, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE);
	do
		ret = fz_syscall3(__NR_writev, fd, (long)iov, count);
	while (fz_call_again(&call, ret));
	return ret;
}

int64_t fz_io_write(struct fz_fiber *self, int fd, const void *buf, size_t n)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = n };
	uint32_t info = fz_fdtab_get(fd);

	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET && n <= FZ_IO_MAX) {
		int64_t ret = fz_io_send(self, fd, buf, n, 0);

		if (ret != -ENOTSOCK)
			return ret;
		fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	}
	if (n == 0 || n > FZ_IO_MAX) {
		fz_io_test_cancel(self);
		return fz_syscall3(__NR_write, fd, (long)buf, (long)n);
	}
	return write_common(self, fd, &iov, 1);
}

int64_t fz_io_writev(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	if (fz_io_bad_vector(iov, count))
		return fz_syscall3(__NR_writev, fd, (long)iov, count);
	return write_common(self, fd, iov, count);
}

int fz_io_sleep(struct fz_fiber *self, fz_nsec deadline)
{
	for (;;) {
		fz_signal_mark(self);
		switch (fz_op_sleep(self, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL)) {
		case FZ_OP_TIMEOUT:
			return 0;
		case FZ_OP_CANCEL:
			fz_host.test_cancel();
			break;
		default:
			return -EINTR;
		}
	}
}
