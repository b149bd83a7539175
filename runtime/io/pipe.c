/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/pipe.c - read and write pipes and FIFOs:
 *
 *	pipe	try without waiting; then read by the ring, write after readiness
 *	FIFO	read: the real call after readiness
 *		write: a brief call if the FIFO is ready, else an announced one
 */
#include "runtime/io/io_internal.h"

#include <fcntl.h>
#include <poll.h>

/* ---- read --------------------------------------------------------------- */

/*
 * Is the FIFO empty, and may somebody still write to it?  A FIFO that was opened before it had a
 * writer, and never had one, is at its end, but poll does not say so.  vmsplice to memory that
 * cannot be written tells the end from an empty FIFO: it does not wait, and it takes no byte out.
 */
static bool fifo_waits(int fd)
{
	static const char nowhere;
	const struct iovec iov = { .iov_base = (void *)&nowhere, .iov_len = 1 };
	long flags;

	if (fz_io_is_ready(fd, POLLIN))
		return false;
	flags = fz_syscall3(__NR_fcntl, fd, F_GETFL, 0);
	switch (flags < 0 ? -1 : flags & O_ACCMODE) {
	case O_RDONLY:
		return fz_syscall4(__NR_vmsplice, fd, (long)&iov, 1, SPLICE_F_NONBLOCK) ==
		       -EAGAIN;
	case O_RDWR:
		/*
		 * Here vmsplice would write the byte into the FIFO.  It is not needed: this
		 * descriptor itself is a writer of the FIFO.
		 */
		return true;
	default:
		return false;
	}
}

/* Which file a descriptor stands for.  inode is 0 if the descriptor is closed, or a filter forbids to ask. */
struct identity {
	uint64_t inode;
	uint32_t major, minor;
};

/* Returns 0 or -errno. */
static int identity_of(int fd, struct identity *ret)
{
	enum { AT_EMPTY = 0x1000, AT_DONT_SYNC = 0x4000 };
	struct statx st;
	const int err = (int)fz_syscall5(__NR_statx, fd, (long)"", AT_EMPTY | AT_DONT_SYNC, STATX_INO, (long)&st);

	if (!err)
		*ret = (struct identity){ st.stx_ino, st.stx_dev_major, st.stx_dev_minor };
	return err;
}

static bool is_same(struct identity a, struct identity b)
{
	return a.inode == b.inode && a.major == b.major && a.minor == b.minor;
}

static int64_t read_by_ring(struct fz_fiber *self, struct fz_pin *spare, const struct iovec *iov,
			    int count)
{
	struct fz_op op = {
		.opcode = count == 1 ? IORING_OP_READ : IORING_OP_READV,
		.fd = spare->number,
		.spare = spare,
		.off = (uint64_t)FZ_IO_CURPOS,
		.hinted = spare->hinted,
		.turn = POLLIN,
		.addr = count == 1 ? (uintptr_t)iov->iov_base : (uintptr_t)iov,
		.len = count == 1 ? fz_io_clamp(iov->iov_len) : (uint32_t)count,
	};

	return fz_io_run(self, &op, FZ_FOREVER, 0, true);
}

/*
 * Read a pipe that the kernel cannot try to read without waiting: a FIFO opened by name, a pipe that
 * was spliced, any pipe on an old kernel.  A request on the ring would be read by a worker thread of
 * the kernel, which keeps a reference to the open file for a moment after the read.  After the
 * program's close(), a writer would then still find a reader (tests/programs/io/io_fifo.c).
 */
static int64_t read_fifo(struct fz_fiber *self, struct fz_pin *pin, const struct fz_io_cursor *c)
{
	struct identity file = { 0 }, now;
	int fd = fz_pin_fd(pin);
	int64_t ret;

	fz_signal_mark(self);
	while (!fz_io_asks_for_nothing(c->iov, c->count) && fifo_waits(fd)) {
		if (!file.inode && (identity_of(fd, &file) || !file.inode))
			break;
		ret = fz_io_wait_ready(self, pin, POLLIN, FZ_FOREVER, true);
		if (ret == FZ_OP_FORBIDDEN)
			break;
		if (ret < 0)
			return ret;
		fd = fz_pin_fd(pin);
		/*
		 * Another thread has closed the descriptor while poll's real call waited, and its
		 * number may name another file now.
		 */
		ret = identity_of(fd, &now);
		if (ret && ret != -EBADF)
			break;
		if (ret || !is_same(file, now))
			return -EBADF;
	}
	/* This call may wait, if another thread has read the data first, or a filter forbids to look. */
	return fz_io_real_transfer(self, fd, c, true);
}

/* Read, and wait for data if there is none; by a request on the ring if by_ring. */
static int64_t read_waiting(struct fz_fiber *self, int fd, uint32_t info, const struct fz_io_cursor *c,
			    bool by_ring)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	int64_t ret = FZ_OP_FORBIDDEN;

	pin.hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info));
	if (by_ring)
		ret = read_by_ring(self, &pin, c->iov, c->count);
	return ret == FZ_OP_FORBIDDEN ? read_fifo(self, &pin, c) : ret;
}

int64_t fz_io_pipe_read(struct fz_fiber *self, int fd, uint32_t info,
			const struct fz_io_cursor *c)
{
	int64_t ret;

	if (info & FZ_FD_FIFO)
		return read_waiting(self, fd, info, c, false);
	/* If the last read had to wait, the next one is likely to: save the attempt. */
	if (!(info & FZ_FD_RECV_WAITED)) {
		ret = fz_io_try(false, fd, c, FZ_IO_CURPOS);
		if (fz_io_cannot_try(ret)) {
			fz_fdtab_change(fd, 0, FZ_FD_FIFO);
			return read_waiting(self, fd, info, c, false);
		}
		if (ret != -EAGAIN)
			return ret;
		fz_fdtab_change(fd, 0, FZ_FD_RECV_WAITED);
	} else {
		/* Try the attempt again next time, to notice when reads need not wait any more. */
		fz_fdtab_change(fd, FZ_FD_RECV_WAITED, 0);
	}
	return read_waiting(self, fd, info, c, true);
}

/* ---- write -------------------------------------------------------------- */

/*
 * poll reports a pipe as ready if it has a free page.  Without a free page, small data still fits
 * behind the end of the last page, so waiting for readiness could wait too long: make the real
 * call.
 */
static int64_t write_fifo(struct fz_fiber *self, int fd, struct fz_io_cursor *c)
{
	return fz_io_make_whole(self, fd, c,
				 c->count == 1 && c->iov->iov_len - c->skip <= PIPE_BUF &&
					 fz_io_is_ready(fd, POLLOUT));
}

int64_t fz_io_make_whole(struct fz_fiber *self, int fd, struct fz_io_cursor *c, bool brief)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_RESTARTS | FZ_CALL_CANCELLABLE |
							       (brief ? FZ_CALL_BRIEF : 0) |
							       (c->done ? FZ_CALL_BEGUN : 0));
	int64_t ret, outcome;

	do {
		struct iovec part;
		const struct fz_io_call own = fz_io_cursor_call(c, fd, &part);

		ret = fz_io_make(&own);
		if (ret > 0) {
			fz_io_cursor_advance(c, (size_t)ret);
			call.flags |= FZ_CALL_BEGUN;
		}
		/*
		 * A short count: a handler has interrupted the call, or only the completion of a
		 * request of this kernel thread.  In the second case the call goes on.
		 */
		outcome = ret > 0 && c->count ? -EINTR : ret;
		if (c->done && fz_call_handled(&call))
			outcome = (int64_t)c->done;
	} while (fz_call_again(&call, outcome));
	fz_call_end(&call, ret);
	return c->done ? (int64_t)c->done : ret;
}

/*
 * A blocking write to a pipe writes everything.  The kernel writes up to PIPE_BUF bytes in one
 * piece or not at all, also when told not to wait.
 */
int64_t fz_io_pipe_write(struct fz_fiber *self, int fd, uint32_t info, struct fz_io_cursor *c)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);

	pin.hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info));
	fz_signal_mark(self);
	do {
		int64_t ret = fz_io_try(true, fz_pin_fd(&pin), c, FZ_IO_CURPOS);

		if (ret > 0) {
			fz_io_cursor_advance(c, (size_t)ret);
			continue;
		}
		if (ret == -EAGAIN) {
			/* After a part, a handler ends the call, whether it has SA_RESTART or not. */
			ret = fz_io_wait_more(self, &pin, POLLOUT, FZ_FOREVER, !c->done, c->done > 0);
			if (ret > 0)
				continue;
		}
		/* A pipe that was spliced meanwhile cannot be tried either. */
		if (fz_io_cannot_try(ret) || ret == FZ_OP_FORBIDDEN)
			return write_fifo(self, fz_pin_fd(&pin), c);
		/* A blocked SIGPIPE is pending for this kernel thread, which the fiber may leave: take it along. */
		if (FZ_UNLIKELY(c->done && ret == -EPIPE))
			fz_signal_collect(self, (int)ret);
		return c->done ? (int64_t)c->done : ret;
	} while (c->count);
	return (int64_t)c->done;
}
