/* SPDX-License-Identifier: MIT */
/*
 * preload/io/path.c - files by name: links, directories, modes, times, mounts.
 *
 * The ring would run some of these calls in a worker thread each, which costs more
 * than most of the calls themselves.  At worst they wait for a disk or a file
 * server, so they are announced as brief.
 */
#include "preload/io/brief.h"

/* ---- by name ------------------------------------------------------------- */

FZ_EXPORT int access(const char *path, int mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_access);
	int ret = fz_real.access(path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_faccessat);
	int ret = fz_real.faccessat(dir, path, mode, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int eaccess(const char *path, int mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_eaccess);
	int ret = fz_real.eaccess(path, mode);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS(euidaccess, eaccess);

FZ_EXPORT int chdir(const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_chdir);
	int ret = fz_real.chdir(path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int chmod(const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_chmod);
	int ret = fz_real.chmod(path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int lchmod(const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lchmod);
	int ret = fz_real.lchmod(path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fchmodat);
	int ret = fz_real.fchmodat(dir, path, mode, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int chown(const char *path, uid_t owner, gid_t group)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_chown);
	int ret = fz_real.chown(path, owner, group);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int lchown(const char *path, uid_t owner, gid_t group)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lchown);
	int ret = fz_real.lchown(path, owner, group);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int fchownat(int dir, const char *path, uid_t owner, gid_t group, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fchownat);
	int ret = fz_real.fchownat(dir, path, owner, group, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int link(const char *from, const char *to)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_link);
	int ret = fz_real.link(from, to);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_linkat);
	int ret = fz_real.linkat(from_dir, from, to_dir, to, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int symlink(const char *target, const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_symlink);
	int ret = fz_real.symlink(target, path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int symlinkat(const char *target, int dir, const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_symlinkat);
	int ret = fz_real.symlinkat(target, dir, path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t readlink(const char *path, char *buf, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_readlink);
	ssize_t ret = fz_real.readlink(path, buf, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t buflen)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___readlink_chk);
	ssize_t ret = fz_real.__readlink_chk(path, buf, n, buflen);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t readlinkat(int dir, const char *path, char *buf, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_readlinkat);
	ssize_t ret = fz_real.readlinkat(dir, path, buf, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n,
				   size_t buflen)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___readlinkat_chk);
	ssize_t ret = fz_real.__readlinkat_chk(dir, path, buf, n, buflen);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int unlink(const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_unlink);
	int ret = fz_real.unlink(path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int unlinkat(int dir, const char *path, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_unlinkat);
	int ret = fz_real.unlinkat(dir, path, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int remove(const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_remove);
	int ret = fz_real.remove(path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int rename(const char *from, const char *to)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_rename);
	int ret = fz_real.rename(from, to);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_renameat);
	int ret = fz_real.renameat(from_dir, from, to_dir, to);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int renameat2(int from_dir, const char *from, int to_dir, const char *to,
			unsigned flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_renameat2);
	int ret = fz_real.renameat2(from_dir, from, to_dir, to, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mkdir(const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mkdir);
	int ret = fz_real.mkdir(path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mkdirat(int dir, const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mkdirat);
	int ret = fz_real.mkdirat(dir, path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int rmdir(const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_rmdir);
	int ret = fz_real.rmdir(path);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mkfifo(const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mkfifo);
	int ret = fz_real.mkfifo(path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mkfifoat(int dir, const char *path, mode_t mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mkfifoat);
	int ret = fz_real.mkfifoat(dir, path, mode);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mknod(const char *path, mode_t mode, dev_t dev)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mknod);
	int ret = fz_real.mknod(path, mode, dev);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mknodat(int dir, const char *path, mode_t mode, dev_t dev)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mknodat);
	int ret = fz_real.mknodat(dir, path, mode, dev);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int truncate(const char *path, off_t size)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_truncate);
	int ret = fz_real.truncate(path, size);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS(truncate64, truncate);

/* ---- times --------------------------------------------------------------- */

FZ_EXPORT int utime(const char *path, const struct utimbuf *times)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_utime);
	int ret = fz_real.utime(path, times);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int utimes(const char *path, const struct timeval times[2])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_utimes);
	int ret = fz_real.utimes(path, times);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int lutimes(const char *path, const struct timeval times[2])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lutimes);
	int ret = fz_real.lutimes(path, times);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int futimesat(int dir, const char *path, const struct timeval times[2])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_futimesat);
	int ret = fz_real.futimesat(dir, path, times);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_utimensat);
	int ret = fz_real.utimensat(dir, path, times, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int futimens(int fd, const struct timespec times[2])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_futimens);
	int ret = fz_real.futimens(fd, times);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int futimes(int fd, const struct timeval times[2])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_futimes);
	int ret = fz_real.futimes(fd, times);

	fz_leave_brief(self);
	return ret;
}

/* ---- handles and mounts -------------------------------------------------- */

FZ_EXPORT int name_to_handle_at(int dir, const char *path, struct file_handle *handle,
				int *mount, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_name_to_handle_at);
	int ret = fz_real.name_to_handle_at(dir, path, handle, mount, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int mount(const char *source, const char *target, const char *type,
		    unsigned long flags, const void *data)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_mount);
	int ret = fz_real.mount(source, target, type, flags, data);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int umount(const char *target)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_umount);
	int ret = fz_real.umount(target);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int umount2(const char *target, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_umount2);
	int ret = fz_real.umount2(target, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int swapon(const char *path, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_swapon);
	int ret = fz_real.swapon(path, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int swapoff(const char *path)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_swapoff);
	int ret = fz_real.swapoff(path);

	fz_leave_brief(self);
	return ret;
}
