/* SPDX-License-Identifier: MIT */
/*
 * preload/io/read.c - read, readv, pread and their kin.
 *
 * All calls are cancellation points (pthreads(7)).  The buffer belongs to the kernel
 * while the fiber is parked; fz_io_* does not return before the kernel is done with it.
 * libc reports an overflow that a __*_chk function detects.
 */
#include "preload/gate.h"
#include "preload/real_call.h"
#include "runtime/io/io.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"

#include <sys/syscall.h>

FZ_EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_read);

	if (!self)
		return fz_real.read(fd, buf, n);
	return fz_leave(fz_io_read(self, fd, buf, n));
}
FZ_EXPORT_ALIAS(__read, read);

FZ_EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t buflen)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___read_chk);

	if (!self || n > buflen)
		return FZ_RETURNS_HERE(fz_real.__read_chk(fd, buf, n, buflen));
	return fz_leave(fz_io_read(self, fd, buf, n));
}

FZ_EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_readv);

	if (!self)
		return fz_real.readv(fd, iov, count);
	return fz_leave(fz_io_readv(self, SYS_readv, fd, iov, count));
}

FZ_EXPORT ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pread);

	if (!self)
		return fz_real.pread(fd, buf, n, offset);
	return fz_leave(fz_io_pread(self, fd, buf, n, offset));
}
FZ_EXPORT_ALIAS(pread64, pread);
FZ_EXPORT_ALIAS(__pread64, pread);

FZ_EXPORT ssize_t __pread_chk(int fd, void *buf, size_t n, off_t offset, size_t buflen)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___pread_chk);

	if (!self || n > buflen)
		return FZ_RETURNS_HERE(fz_real.__pread_chk(fd, buf, n, offset, buflen));
	return fz_leave(fz_io_pread(self, fd, buf, n, offset));
}
FZ_EXPORT_ALIAS(__pread64_chk, __pread_chk);

FZ_EXPORT ssize_t preadv(int fd, const struct iovec *iov, int count, off_t offset)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_preadv);

	if (!self)
		return fz_real.preadv(fd, iov, count, offset);
	return fz_leave(fz_io_preadv(self, SYS_preadv, fd, iov, count, offset));
}
FZ_EXPORT_ALIAS(preadv64, preadv);

FZ_EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_preadv2);
	struct fz_blocked call;
	int64_t ret;

	if (!self)
		return FZ_RETURNS_HERE(fz_real.preadv2(fd, iov, count, offset, flags));
	if (flags == 0) {
		ret = offset == -1 ? fz_io_readv(self, SYS_preadv2, fd, iov, count) :
				     fz_io_preadv(self, SYS_preadv2, fd, iov, count, offset);
		/* If the kernel lacks preadv2, libc's function makes another system call. */
		return ret == -ENOSYS ? fz_real.preadv2(fd, iov, count, offset, flags) :
					fz_leave(ret);
	}
	call = fz_block(flags & RWF_NOWAIT ? NULL : self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.preadv2(fd, iov, count, offset, flags));
}
FZ_EXPORT_ALIAS(preadv64v2, preadv2);
