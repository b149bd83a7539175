/* SPDX-License-Identifier: MIT */
/*
 * preload/io/write.c - write, writev, pwrite and their kin.
 *
 * A blocking write to a pipe or stream socket writes everything unless a
 * handler interrupts it.  SIGPIPE goes to the writing thread.
 */
#include "preload/gate.h"
#include "preload/real_call.h"
#include "runtime/io/io.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"

#include <sys/syscall.h>

FZ_EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_write);

	if (!self)
		return fz_real.write(fd, buf, n);
	return fz_leave(fz_io_write(self, fd, buf, n));
}
FZ_EXPORT_ALIAS(__write, write);

FZ_EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_writev);

	if (!self)
		return fz_real.writev(fd, iov, count);
	return fz_leave(fz_io_writev(self, SYS_writev, fd, iov, count));
}

FZ_EXPORT ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pwrite);

	if (!self)
		return fz_real.pwrite(fd, buf, n, offset);
	return fz_leave(fz_io_pwrite(self, fd, buf, n, offset));
}
FZ_EXPORT_ALIAS(pwrite64, pwrite);
FZ_EXPORT_ALIAS(__pwrite64, pwrite);

FZ_EXPORT ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pwritev);

	if (!self)
		return fz_real.pwritev(fd, iov, count, offset);
	/* An offset of -1 has a meaning in pwritev2 only. */
	if (offset < 0)
		return fz_real.pwritev(fd, iov, count, offset);
	return fz_leave(fz_io_pwritev(self, SYS_pwritev, fd, iov, count, offset, 0));
}
FZ_EXPORT_ALIAS(pwritev64, pwritev);

FZ_EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pwritev2);
	struct fz_blocked call;
	ssize_t ret;

	if (!self)
		return FZ_RETURNS_HERE(fz_real.pwritev2(fd, iov, count, offset, flags));
	if (offset >= 0 || (flags == 0 && offset == -1)) {
		ret = offset == -1 ?
			      fz_io_writev(self, SYS_pwritev2, fd, iov, count) :
			      fz_io_pwritev(self, SYS_pwritev2, fd, iov, count, offset, flags);
		/* If the kernel lacks pwritev2, libc's function makes another system call. */
		return ret == -ENOSYS ? fz_real.pwritev2(fd, iov, count, offset, flags) :
					fz_leave(ret);
	}
	call = fz_block(self, FZ_CALL_RESTARTS);
	ret = FZ_REPEAT(&call, fz_real.pwritev2(fd, iov, count, offset, flags));
	fz_block_end(&call, ret);
	return ret;
}
FZ_EXPORT_ALIAS(pwritev64v2, pwritev2);
