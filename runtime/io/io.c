/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/io.c - read and write, by kind of descriptor:
 *
 *	socket	runtime/io/recv.c, send.c
 *	pipe	runtime/io/pipe.c
 *	file	runtime/io/file.c
 *	anonymous inode (eventfd and the like)
 *		try without waiting, then wait for readiness and try again
 *	other	the real call, announced unless it is ready: a terminal may answer
 *		without ever becoming ready (VMIN, VTIME)
 *
 * A seccomp filter may forbid any call that is made in place of the program's.  Then the program's own
 * call is made: the program must see no error but those of its own call.
 */
#include "runtime/io/io_internal.h"

#include <poll.h>

#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/backend/filter.h"
#include "runtime/io/socket.h"

struct fz_io_call fz_io_cursor_call(const struct fz_io_cursor *c, int fd, struct iovec *ret_part)
{
	struct fz_io_call call = *c->own;
	long *args = call.args;
	int count;

	args[0] = fd;
	switch (call.number) {
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_pwritev:
	case __NR_pwritev2:
		if (args[3] != FZ_IO_CURPOS)
			args[3] += (long)c->done;
		/* fall through */
	case __NR_readv:
	case __NR_writev:
		args[1] = (long)fz_io_cursor_rest(c, ret_part, &count);
		args[2] = count;
		return call;
	case __NR_pread64:
	case __NR_pwrite64:
		args[3] += (long)c->done;
		break;
	default:
		break;
	}
	args[1] += (long)c->done;
	args[2] = (long)(fz_io_clamp((size_t)args[2]) - c->done);
	return call;
}

int64_t fz_io_try(bool writing, int fd, const struct fz_io_cursor *c, int64_t offset)
{
	const long number = writing ? __NR_pwritev2 : __NR_preadv2;
	struct iovec part;
	const struct iovec *iov;
	int64_t ret;
	int count;

	if (!fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT))
		return -EOPNOTSUPP;
	iov = fz_io_cursor_rest(c, &part, &count);
	ret = fz_syscall6(number, fd, (long)iov, count, offset, 0, RWF_NOWAIT);
	if (fz_io_cannot_try(ret) ||
	    !fz_sys_is_denied(ret, number, (long)&part, 0, offset, 0, RWF_NOWAIT))
		return ret;
	fz_feature_lose(FZ_FEATURE_RWF_NOWAIT);
	return -EOPNOTSUPP;
}

int64_t fz_io_real_transfer(struct fz_fiber *self, int fd, const struct fz_io_cursor *c,
			    bool ready)
{
	struct iovec part;
	const struct fz_io_call call = fz_io_cursor_call(c, fd, &part);

	return fz_io_make_announced(self, &call, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE |
							 (ready ? FZ_CALL_BRIEF : 0));
}

static int64_t read_other(struct fz_fiber *self, int fd, const struct fz_io_cursor *c)
{
	return fz_io_real_transfer(self, fd, c, fz_io_is_ready(fd, POLLIN));
}

static int64_t read_anonymous(struct fz_fiber *self, int fd, const struct fz_io_cursor *c)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);

	fz_signal_mark(self);
	for (;;) {
		int64_t ret;

		fd = fz_pin_fd(&pin);
		ret = fz_io_try(false, fd, c, FZ_IO_CURPOS);
		/*
		 * The kernel cannot try on this descriptor.  Readiness does not help, because the call
		 * may be an error whether the descriptor is ready or not: only the real call knows.
		 */
		if (fz_io_cannot_try(ret))
			return read_other(self, fd, c);
		/*
		 * Return an error, too: the attempt may have consumed what was there (eventfd,
		 * timerfd).
		 */
		if (ret != -EAGAIN)
			return ret;
		ret = fz_io_wait_ready(self, &pin, POLLIN, FZ_FOREVER, true);
		if (ret == FZ_OP_FORBIDDEN)
			return read_other(self, fz_pin_fd(&pin), c);
		if (ret < 0)
			return ret;
	}
}

bool fz_io_asks_for_nothing(const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		if (!fz_sys_readable(&iov[i].iov_len))
			return true;
		if (iov[i].iov_len)
			return false;
	}
	return true;
}

static int64_t read_common(struct fz_fiber *self, int fd, struct fz_io_cursor *c)
{
	uint32_t info;
	int nonblocking;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET) {
		/* readv of 0 bytes does not reach the socket, but recvmsg, which stands in for it, would. */
		if (fz_io_asks_for_nothing(c->iov, c->count))
			return fz_io_make(c->own);
		return fz_io_socket_readv(self, fd, c);
	}
	if (fz_filter_forbids(c->own->number))
		return fz_io_real_transfer(self, fd, c, false);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return fz_io_file_read(self, fd, info, c, FZ_IO_CURPOS);
	nonblocking = fz_fdtab_nonblocking(fd, info);
	if (nonblocking == -EBADF)
		return -EBADF;
	if (nonblocking < 0)
		return fz_io_real_transfer(self, fd, c, false);
	fz_io_yield_sometimes(self, false);
	if (nonblocking)
		return fz_io_make(c->own);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return fz_io_pipe_read(self, fd, info, c);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_ANONYMOUS)
		return read_anonymous(self, fd, c);
	/* How long the device takes depends on the size of the buffer; any signal ends the read early. */
	if (info & FZ_FD_ENDLESS)
		return fz_io_make_whole(self, fd, c, true);
	return read_other(self, fd, c);
}

static int64_t read_once(struct fz_fiber *self, int fd, void *buf, size_t n)
{
	const struct fz_io_call own = { __NR_read, { fd, (long)buf, (long)n } };
	struct iovec iov = { .iov_base = buf, .iov_len = fz_io_clamp(n) };
	struct fz_io_cursor c = { .own = &own, .iov = &iov, .count = 1 };
	int64_t ret;

	/* On a socket, read of 0 bytes gives another answer than recv, so the program's own call is made. */
	if (fz_io_is_refused_size(buf, n)) {
		fz_io_test_cancel(self);
		return fz_io_make(&own);
	}
	if ((fz_fdtab_get(fd) & FZ_FD_KIND_MASK) == FZ_FD_SOCKET) {
		ret = fz_io_socket_read(self, fd, buf, n);
		if (ret != -ENOTSOCK)
			return ret;
		fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	}
	return read_common(self, fd, &c);
}

int64_t fz_io_read(struct fz_fiber *self, int fd, void *buf, size_t n)
{
	return FZ_IO_CALL(read_once(self, fd, buf, n));
}

int64_t fz_io_readv(struct fz_fiber *self, long number, int fd, const struct iovec *iov, int count)
{
	const struct fz_io_call own = { number, { fd, (long)iov, count, FZ_IO_CURPOS, -1, 0 } };
	struct fz_io_cursor c = { .own = &own, .iov = iov, .count = count };

	/* Nothing to transfer, or an error: the kernel answers at once. */
	if (fz_io_bad_vector(iov, count))
		return fz_io_make(&own);
	return FZ_IO_CALL(read_common(self, fd, &c));
}

/* ---- write -------------------------------------------------------------- */

static int64_t write_common(struct fz_fiber *self, int fd, struct fz_io_cursor *c)
{
	uint32_t info;
	int nonblocking;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET)
		return fz_io_socket_writev(self, fd, c);
	if (fz_filter_forbids(c->own->number))
		return fz_io_real_transfer(self, fd, c, false);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return fz_io_file_write(self, fd, info, c, FZ_IO_CURPOS, 0);
	nonblocking = fz_fdtab_nonblocking(fd, info);
	if (nonblocking == -EBADF)
		return -EBADF;
	if (nonblocking < 0)
		return fz_io_make_whole(self, fd, c, false);
	if (nonblocking)
		return fz_io_make(c->own);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return fz_io_pipe_write(self, fd, info, c);
	if (info & FZ_FD_UNASKED)
		return fz_io_make_whole(self, fd, c, false);
	return fz_io_real_transfer(self, fd, c, fz_io_is_ready(fd, POLLOUT));
}

static int64_t write_once(struct fz_fiber *self, int fd, const void *buf, size_t n)
{
	const struct fz_io_call own = { __NR_write, { fd, (long)buf, (long)n } };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = fz_io_clamp(n) };
	struct fz_io_cursor c = { .own = &own, .iov = &iov, .count = 1 };
	const bool refused = fz_io_is_refused_size(buf, n);
	uint32_t info = fz_fdtab_get(fd);

	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET && !(n && refused)) {
		int64_t ret = fz_io_socket_write(self, fd, buf, n);

		if (ret != -ENOTSOCK)
			return ret;
		fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	}
	if (refused) {
		fz_io_test_cancel(self);
		return fz_io_make(&own);
	}
	return write_common(self, fd, &c);
}

int64_t fz_io_write(struct fz_fiber *self, int fd, const void *buf, size_t n)
{
	return FZ_IO_CALL(write_once(self, fd, buf, n));
}

int64_t fz_io_writev(struct fz_fiber *self, long number, int fd, const struct iovec *iov,
		     int count)
{
	const struct fz_io_call own = { number, { fd, (long)iov, count, FZ_IO_CURPOS, -1, 0 } };
	struct fz_io_cursor c = { .own = &own, .iov = iov, .count = count };

	if (fz_io_bad_vector(iov, count))
		return fz_io_make(&own);
	return FZ_IO_CALL(write_common(self, fd, &c));
}
