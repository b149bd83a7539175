/* SPDX-License-Identifier: MIT */
/*
 * runtime/io_file.c - files never wait for an event, but for the disk.
 *
 *	read	from the page cache without waiting; what is not there, by the ring,
 *		which needs no worker thread for that
 *	write	the real call, announced as brief; by the ring (a worker thread of
 *		it) once the descriptor was throttled, until one is fast again
 *	O_DIRECT, O_SYNC	each is a request on the ring
 *	fsync	the real call if the last one on the descriptor was fast, else the ring
 *
 * At the current position always the real call: only it takes the file's lock on
 * that, without which two threads would read the same bytes.
 */
#include "runtime/io_file.h"

#include <sys/uio.h>

#include "runtime/announce.h"
#include "runtime/features.h"
#include "runtime/io_internal.h"
#include "runtime/sched.h"
#include "runtime/sys.h"
#include "runtime/timer.h"

/* Of RWF_*, what the ring understands as the system call does. */
enum { RING_FLAGS = RWF_DSYNC | RWF_SYNC | RWF_APPEND };

/* Above it, the ring; a worker thread of it alone costs about this. */
#define SYNC_IS_SLOW (20 * FZ_USEC)
/* A throttled writer is made to wait for some milliseconds. */
#define WRITE_IS_SLOW (200 * FZ_USEC)

enum fz_io_policy fz_io_policy;

/* Neither a signal nor a cancellation ends it, as with the system call. */
static int64_t run(struct fz_fiber *self, const struct fz_op *op)
{
	int64_t ret;

	do
		ret = fz_op_wait(self, op, FZ_FOREVER, 0);
	/* A worker thread of the ring was disturbed, not we. */
	while (ret == -EINTR);
	return ret;
}

static int64_t transfer(struct fz_fiber *self, bool writing, int fd, const struct iovec *iov,
			int count, int64_t offset, int flags)
{
	struct fz_op op = {
		.opcode = writing ? IORING_OP_WRITEV : IORING_OP_READV,
		.fd = fd,
		.off = (uint64_t)offset,
		.addr = (uintptr_t)iov,
		.len = (uint32_t)count,
		.op_flags = (uint32_t)flags,
	};

	if (count == 1) {
		op.opcode = writing ? IORING_OP_WRITE : IORING_OP_READ;
		op.addr = (uintptr_t)iov->iov_base;
		op.len = fz_io_clamp(iov->iov_len);
	}
	return run(self, &op);
}

static int64_t real_read(int fd, const struct iovec *iov, int count, int64_t offset, int flags)
{
	if (offset == FZ_IO_CURPOS && !flags)
		return fz_syscall3(__NR_readv, fd, (long)iov, count);
	if (!flags)
		return fz_syscall5(__NR_preadv, fd, (long)iov, count, offset, 0);
	return fz_syscall6(__NR_preadv2, fd, (long)iov, count, offset, 0, flags);
}

static int64_t real_write(int fd, const struct iovec *iov, int count, int64_t offset, int flags)
{
	if (offset == FZ_IO_CURPOS && !flags)
		return fz_syscall3(__NR_writev, fd, (long)iov, count);
	if (!flags)
		return fz_syscall5(__NR_pwritev, fd, (long)iov, count, offset, 0);
	return fz_syscall6(__NR_pwritev2, fd, (long)iov, count, offset, 0, flags);
}

/* ---- read --------------------------------------------------------------- */

/* Not in the page cache. */
static int64_t read_from_disk(struct fz_fiber *self, int fd, const struct iovec *iov,
			      int count, int64_t offset)
{
	int64_t ret;

	if (offset != FZ_IO_CURPOS && fz_io_policy != FZ_IO_DIRECT)
		return transfer(self, false, fd, iov, count, offset, 0);
	fz_announce(self);
	ret = real_read(fd, iov, count, offset, 0);
	fz_announce_end(self);
	return ret;
}

static int64_t read_once(struct fz_fiber *self, int fd, uint32_t info, const struct iovec *iov,
			 int count, int64_t offset)
{
	int64_t ret;

	if (info & FZ_FD_DIRECT || fz_io_policy == FZ_IO_RING)
		return read_from_disk(self, fd, iov, count, offset);
	ret = fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT) ?
		      real_read(fd, iov, count, offset, RWF_NOWAIT) : -EOPNOTSUPP;
	/* Some file systems, emulators and old kernels cannot try. */
	if (ret == -EAGAIN || ret == -EOPNOTSUPP || ret == -ENOSYS)
		ret = read_from_disk(self, fd, iov, count, offset);
	return ret;
}

int64_t fz_io_file_read(struct fz_fiber *self, int fd, uint32_t info, const struct iovec *iov,
			int count, int64_t offset)
{
	struct fz_io_cursor c = { .iov = iov, .count = count };
	int64_t done = 0;

	for (;;) {
		struct iovec part;
		const struct iovec *rest = fz_io_cursor_rest(&c, &part);
		int64_t ret = read_once(self, fd, info, rest, c.skip ? 1 : c.count,
					offset == FZ_IO_CURPOS ? offset : offset + done);

		if (ret <= 0)
			return done ? done : ret;
		done += ret;
		/* The end of the file, or of what the page cache had. */
		fz_io_cursor_advance(&c, (size_t)ret);
		if (!c.count)
			return done;
	}
}

/* ---- write -------------------------------------------------------------- */

static int64_t write_by_ring(struct fz_fiber *self, int fd, const struct iovec *iov, int count,
			     int64_t offset, int flags)
{
	fz_nsec begin = fz_now();
	int64_t ret = transfer(self, true, fd, iov, count, offset, flags);

	if (fz_now() - begin < WRITE_IS_SLOW)
		fz_fdtab_change(fd, FZ_FD_SLOW_WRITE, 0);
	return ret;
}

int64_t fz_io_file_write(struct fz_fiber *self, int fd, uint32_t info,
			 const struct iovec *iov, int count, int64_t offset, int flags)
{
	bool slow = info & (FZ_FD_DIRECT | FZ_FD_SLOW_WRITE) || flags & (RWF_DSYNC | RWF_SYNC);
	int64_t ret;

	if (fz_io_policy != FZ_IO_AUTO)
		slow = fz_io_policy == FZ_IO_RING;
	if (slow && offset != FZ_IO_CURPOS && !(flags & ~RING_FLAGS))
		return write_by_ring(self, fd, iov, count, offset, flags);
	if (slow)
		fz_announce(self);
	else
		fz_announce_brief(self);
	ret = real_write(fd, iov, count, offset, flags);
	if (fz_announce_end(self) && !slow)
		fz_fdtab_change(fd, 0, FZ_FD_SLOW_WRITE);
	else if (slow && offset == FZ_IO_CURPOS)
		/* Every other time, so that a change is noticed. */
		fz_fdtab_change(fd, FZ_FD_SLOW_WRITE, 0);
	return ret;
}

int64_t fz_io_pwritev(struct fz_fiber *self, int fd, const struct iovec *iov, int count,
		      int64_t offset, int flags)
{
	uint32_t info;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (offset < 0 || fz_io_bad_vector(iov, count) || (info & FZ_FD_KIND_MASK) != FZ_FD_FILE)
		return fz_syscall6(__NR_pwritev2, fd, (long)iov, count, offset, 0, flags);
	return fz_io_file_write(self, fd, info, iov, count, offset, flags);
}

int64_t fz_io_pwrite(struct fz_fiber *self, int fd, const void *buf, size_t n, int64_t offset)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = n };
	uint32_t info;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	if (offset < 0 || n > FZ_IO_MAX || (info & FZ_FD_KIND_MASK) != FZ_FD_FILE)
		return fz_syscall4(__NR_pwrite64, fd, (long)buf, (long)n, offset);
	return fz_io_file_write(self, fd, info, &iov, 1, offset, 0);
}

/* ---- fsync -------------------------------------------------------------- */

int fz_io_fsync(struct fz_fiber *self, int fd, bool data_only)
{
	const struct fz_op op = {
		.opcode = IORING_OP_FSYNC,
		.fd = fd,
		.op_flags = data_only ? IORING_FSYNC_DATASYNC : 0,
	};
	fz_nsec begin, took;
	uint32_t info;
	bool slow;
	int64_t ret;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	fz_io_test_cancel(self);
	slow = fz_io_policy == FZ_IO_AUTO ? info & FZ_FD_SLOW_SYNC :
					    fz_io_policy == FZ_IO_RING;
	begin = fz_now();
	if (slow && (info & FZ_FD_KIND_MASK) == FZ_FD_FILE) {
		ret = run(self, &op);
	} else {
		fz_announce_brief(self);
		ret = fz_syscall1(data_only ? __NR_fdatasync : __NR_fsync, fd);
		fz_announce_end(self);
	}
	took = fz_now() - begin;
	if (took > SYNC_IS_SLOW)
		fz_fdtab_change(fd, 0, FZ_FD_SLOW_SYNC);
	else
		fz_fdtab_change(fd, FZ_FD_SLOW_SYNC, 0);
	return (int)ret;
}
