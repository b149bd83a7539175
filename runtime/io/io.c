/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/io.c - read and write, by kind of descriptor:
 *
 *	socket	runtime/io/recv.c, send.c
 *	pipe	runtime/io/pipe.c
 *	file	runtime/io/file.c
 *	anonymous inode (eventfd and the like)
 *		try without waiting, then readiness
 *	other	the real call, announced unless it is ready: a terminal may answer
 *		without ever becoming ready (VMIN, VTIME)
 */
#include "runtime/io/io_internal.h"

#include <poll.h>

#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/io/socket.h"

int64_t fz_io_try_readv(int fd, const struct iovec *iov, int count)
{
	if (!fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT))
		return -EOPNOTSUPP;
	return fz_syscall6(__NR_preadv2, fd, (long)iov, count, FZ_IO_CURPOS, 0, RWF_NOWAIT);
}

int64_t fz_io_real_transfer(struct fz_fiber *self, long number, int fd, const struct iovec *iov,
			    int count, bool ready)
{
	const struct fz_io_call c = { number, { fd, (long)iov, count } };

	return fz_io_make_announced(self, &c, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE |
						      (ready ? FZ_CALL_BRIEF : 0));
}

static int64_t read_other(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	return fz_io_real_transfer(self, __NR_readv, fd, iov, count, fz_io_is_ready(fd, POLLIN));
}

static int64_t read_anonymous(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);

	fz_signal_mark(self);
	for (;;) {
		int64_t ret;

		fd = fz_pin_fd(&pin);
		ret = fz_io_try_readv(fd, iov, count);
		/*
		 * The call may still be an error, whatever readiness says: only the real call
		 * knows.
		 */
		if (fz_io_cannot_try(ret))
			return read_other(self, fd, iov, count);
		/*
		 * Return an error, too: the attempt may have consumed what was there (eventfd,
		 * timerfd).
		 */
		if (ret != -EAGAIN)
			return ret;
		ret = fz_io_wait_ready(self, &pin, POLLIN, FZ_FOREVER, true);
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

static int64_t read_common(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
	uint32_t info;
	int nonblocking;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET) {
		/* readv of nothing does not ask the socket; recvmsg would. */
		if (fz_io_asks_for_nothing(iov, count))
			return fz_syscall3(__NR_readv, fd, (long)iov, count);
		return fz_io_socket_readv(self, fd, iov, count);
	}
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return fz_io_file_read(self, fd, info, iov, count, FZ_IO_CURPOS);
	nonblocking = fz_fdtab_nonblocking(fd, info);
	if (nonblocking < 0)
		return -EBADF;
	if (nonblocking)
		return fz_syscall3(__NR_readv, fd, (long)iov, count);
	fz_io_take_turns(self);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return fz_io_pipe_read(self, fd, info, iov, count);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_ANONYMOUS)
		return read_anonymous(self, fd, iov, count);
	return read_other(self, fd, iov, count);
}

int64_t fz_io_read(struct fz_fiber *self, int fd, void *buf, size_t n)
{
	struct iovec iov = { .iov_base = buf, .iov_len = fz_io_clamp(n) };
	int64_t ret;

	/* On a socket, too, read of 0 bytes answers something else than recv. */
	if (fz_io_is_refused_size(buf, n)) {
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
	/* Nothing to transfer, or an error: the kernel answers at once. */
	if (fz_io_bad_vector(iov, count))
		return fz_syscall3(__NR_readv, fd, (long)iov, count);
	return read_common(self, fd, iov, count);
}

/* ---- write -------------------------------------------------------------- */

static int64_t write_common(struct fz_fiber *self, int fd, const struct iovec *iov, int count)
{
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
	if (nonblocking)
		return fz_syscall3(__NR_writev, fd, (long)iov, count);
	if ((info & FZ_FD_KIND_MASK) == FZ_FD_PIPE)
		return fz_io_pipe_write(self, fd, iov, count);
	return fz_io_real_transfer(self, __NR_writev, fd, iov, count, fz_io_is_ready(fd, POLLOUT));
}

int64_t fz_io_write(struct fz_fiber *self, int fd, const void *buf, size_t n)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = fz_io_clamp(n) };
	const bool refused = fz_io_is_refused_size(buf, n);
	uint32_t info = fz_fdtab_get(fd);

	if ((info & FZ_FD_KIND_MASK) == FZ_FD_SOCKET && !(n && refused)) {
		int64_t ret = fz_io_send(self, fd, buf, n, 0);

		if (ret != -ENOTSOCK)
			return ret;
		fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	}
	if (refused) {
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
