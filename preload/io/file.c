/* SPDX-License-Identifier: MIT */
/*
 * preload/io/file.c - opening files, and operations on open files besides reading and writing:
 * syncing, copying inside the kernel.
 *
 * open may wait for a disk, or for the other end of a FIFO: it is a brief call.
 */
#include "preload/io/brief.h"
#include "preload/io/fd.h"
#include "preload/real_call.h"
#include "preload/thread/proc.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/sched/announce.h"

#include <stdarg.h>

/* ---- open --------------------------------------------------------------- */

static struct fz_blocked begin_open(struct fz_fiber *self)
{
	return fz_block(self, FZ_CALL_BRIEF | FZ_CALL_RESTARTS);
}

/* fd: the result of the real call for the path that fz_proc_reopen() has returned.  Returns fd. */
static int reopened(int fd)
{
	if (fd >= 0)
		fz_fdtab_opened(fd);
	return fd;
}

FZ_EXPORT int open(const char *path, int flags, ...)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM_open));
	char room[FZ_PROC_ROOM];
	const char *other;
	va_list args;
	mode_t mode;
	int fd;

	/* mode may be missing. Read the word as libc does: the kernel ignores it unless flags need a mode. */
	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	fd = fz_fd_opened(&call, path, FZ_REPEAT(&call, fz_real.open(path, flags, mode)));
	other = fz_proc_reopen(path, fd, room);
	return FZ_LIKELY(!other) ? fd : reopened(fz_real.open(other, flags, mode));
}
FZ_EXPORT_ALIAS(open64, open);
FZ_EXPORT_ALIAS(__open, open);
FZ_EXPORT_ALIAS(__open64, open);

FZ_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM_openat));
	char room[FZ_PROC_ROOM];
	const char *other;
	va_list args;
	mode_t mode;
	int fd;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	fd = fz_fd_opened(&call, path, FZ_REPEAT(&call, fz_real.openat(dir, path, flags, mode)));
	other = fz_proc_reopen(path, fd, room);
	return FZ_LIKELY(!other) ? fd : reopened(fz_real.openat(dir, other, flags, mode));
}
FZ_EXPORT_ALIAS(openat64, openat);

/* Takes no mode; libc aborts a program whose flags need one. */
FZ_EXPORT int __open_2(const char *path, int flags)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM___open_2));
	char room[FZ_PROC_ROOM];
	int fd = fz_fd_opened(&call, path, FZ_REPEAT(&call, fz_real.__open_2(path, flags)));
	const char *other = fz_proc_reopen(path, fd, room);

	return FZ_LIKELY(!other) ? fd : reopened(fz_real.__open_2(other, flags));
}
FZ_EXPORT_ALIAS(__open64_2, __open_2);

FZ_EXPORT int __openat_2(int dir, const char *path, int flags)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM___openat_2));
	char room[FZ_PROC_ROOM];
	int fd = fz_fd_opened(&call, path, FZ_REPEAT(&call, fz_real.__openat_2(dir, path, flags)));
	const char *other = fz_proc_reopen(path, fd, room);

	return FZ_LIKELY(!other) ? fd : reopened(fz_real.__openat_2(dir, other, flags));
}
FZ_EXPORT_ALIAS(__openat64_2, __openat_2);

FZ_EXPORT int creat(const char *path, mode_t mode)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM_creat));

	return fz_fd_opened(&call, path, FZ_REPEAT(&call, fz_real.creat(path, mode)));
}
FZ_EXPORT_ALIAS(creat64, creat);

FZ_EXPORT int open_by_handle_at(int mount, struct file_handle *handle, int flags)
{
	struct fz_blocked call = begin_open(fz_enter(FZ_SYM_open_by_handle_at));

	return fz_fd_opened(&call, NULL, FZ_REPEAT(&call, fz_real.open_by_handle_at(mount, handle, flags)));
}

/* ---- by descriptor ------------------------------------------------------- */

FZ_EXPORT_BRIEF(int, fchdir, (int fd), fd)
FZ_EXPORT_BRIEF(int, fchmod, (int fd, mode_t mode), fd, mode)
FZ_EXPORT_BRIEF(int, fchown, (int fd, uid_t owner, gid_t group), fd, owner, group)
FZ_EXPORT_BRIEF(int, ftruncate, (int fd, off_t size), fd, size)
FZ_EXPORT_ALIAS(ftruncate64, ftruncate);
/* posix_fadvise returns an error number, but FZ_EXPORT_BRIEF will do: without a file server no EINTR comes. */
FZ_EXPORT_BRIEF(int, posix_fadvise,
		(int fd, off_t offset, off_t n, int advice), fd, offset, n, advice)
FZ_EXPORT_ALIAS(posix_fadvise64, posix_fadvise);
FZ_EXPORT_BRIEF(ssize_t, readahead, (int fd, off_t offset, size_t n), fd, offset, n)
FZ_EXPORT_BRIEF(ssize_t, getdents64, (int fd, void *buf, size_t n), fd, buf, n)

FZ_EXPORT int fallocate(int fd, int mode, off_t offset, off_t n)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_fallocate), FZ_CALL_BRIEF);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.fallocate(fd, mode, offset, n)));
}
FZ_EXPORT_ALIAS(fallocate64, fallocate);

FZ_EXPORT int posix_fallocate(int fd, off_t offset, off_t n)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_posix_fallocate);
	struct fz_real_call call;
	int ret;

	if (!self)
		return fz_real.posix_fallocate(fd, offset, n);
	call = fz_call_begin(self, FZ_CALL_BRIEF);
	do
		ret = -fz_real.posix_fallocate(fd, offset, n);
	while (fz_call_again(&call, ret));
	fz_call_end(&call, ret);
	return fz_leave_pthread(ret);
}
FZ_EXPORT_ALIAS(posix_fallocate64, posix_fallocate);

/* ---- until it is on disk ------------------------------------------------- */

FZ_EXPORT int fsync(int fd)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_fsync);

	if (!self)
		return fz_real.fsync(fd);
	return (int)fz_leave(fz_io_fsync(self, fd, false));
}

FZ_EXPORT int fdatasync(int fd)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_fdatasync);

	if (!self)
		return fz_real.fdatasync(fd);
	return (int)fz_leave(fz_io_fsync(self, fd, true));
}

FZ_EXPORT int sync_file_range(int fd, off_t offset, off_t n, unsigned flags)
{
	const unsigned waits = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_sync_file_range),
					  flags & waits ? 0 : FZ_CALL_BRIEF);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.sync_file_range(fd, offset, n, flags)));
}

FZ_EXPORT void sync(void)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_sync), 0);

	fz_real.sync();
	fz_block_end(&call, 0);
}

FZ_EXPORT int syncfs(int fd)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_syncfs), 0);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.syncfs(fd)));
}

FZ_EXPORT int msync(void *start, size_t n, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_msync);
	struct fz_blocked call = fz_block(flags & MS_SYNC ? self : NULL, 0);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.msync(start, n, flags)));
}

/* ---- copying inside the kernel ------------------------------------------- */

FZ_EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t n)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sendfile);
	int64_t ret;
	int state;

	if (!self)
		return fz_real.sendfile(out, in, offset, n);
	/* In libc sendfile is no cancellation point, unlike splice. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = fz_io_sendfile(self, out, in, offset, n);
	pthread_setcancelstate(state, NULL);
	return fz_leave(ret);
}
FZ_EXPORT_ALIAS(sendfile64, sendfile);

FZ_EXPORT ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n,
			 unsigned flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_splice);

	if (!self)
		return fz_real.splice(in, in_offset, out, out_offset, n, flags);
	return fz_leave(fz_io_splice(self, in, in_offset, out, out_offset, n, flags));
}

FZ_EXPORT ssize_t tee(int in, int out, size_t n, unsigned flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_tee);

	if (!self)
		return fz_real.tee(in, out, n, flags);
	return fz_leave(fz_io_tee(self, in, out, n, flags));
}

FZ_EXPORT ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_vmsplice);

	if (!self)
		return fz_real.vmsplice(fd, iov, count, flags);
	return fz_leave(fz_io_vmsplice(self, fd, iov, count, flags));
}

FZ_EXPORT ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset,
				  size_t n, unsigned flags)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_copy_file_range), FZ_CALL_BRIEF);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.copy_file_range(
						       in, in_offset, out, out_offset, n, flags)));
}
