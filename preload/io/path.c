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
	return FZ_BRIEF(access, path, mode);
}

FZ_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	return FZ_BRIEF(faccessat, dir, path, mode, flags);
}

FZ_EXPORT int eaccess(const char *path, int mode)
{
	return FZ_BRIEF(eaccess, path, mode);
}
FZ_EXPORT_ALIAS(euidaccess, eaccess);

FZ_EXPORT int chdir(const char *path)
{
	return FZ_BRIEF(chdir, path);
}

FZ_EXPORT int chmod(const char *path, mode_t mode)
{
	return FZ_BRIEF(chmod, path, mode);
}

FZ_EXPORT int lchmod(const char *path, mode_t mode)
{
	return FZ_BRIEF(lchmod, path, mode);
}

FZ_EXPORT int fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	return FZ_BRIEF(fchmodat, dir, path, mode, flags);
}

FZ_EXPORT int chown(const char *path, uid_t owner, gid_t group)
{
	return FZ_BRIEF(chown, path, owner, group);
}

FZ_EXPORT int lchown(const char *path, uid_t owner, gid_t group)
{
	return FZ_BRIEF(lchown, path, owner, group);
}

FZ_EXPORT int fchownat(int dir, const char *path, uid_t owner, gid_t group, int flags)
{
	return FZ_BRIEF(fchownat, dir, path, owner, group, flags);
}

FZ_EXPORT int link(const char *from, const char *to)
{
	return FZ_BRIEF(link, from, to);
}

FZ_EXPORT int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	return FZ_BRIEF(linkat, from_dir, from, to_dir, to, flags);
}

FZ_EXPORT int symlink(const char *target, const char *path)
{
	return FZ_BRIEF(symlink, target, path);
}

FZ_EXPORT int symlinkat(const char *target, int dir, const char *path)
{
	return FZ_BRIEF(symlinkat, target, dir, path);
}

FZ_EXPORT ssize_t readlink(const char *path, char *buf, size_t n)
{
	return FZ_BRIEF(readlink, path, buf, n);
}

FZ_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t buflen)
{
	return FZ_BRIEF(__readlink_chk, path, buf, n, buflen);
}

FZ_EXPORT ssize_t readlinkat(int dir, const char *path, char *buf, size_t n)
{
	return FZ_BRIEF(readlinkat, dir, path, buf, n);
}

FZ_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n,
				   size_t buflen)
{
	return FZ_BRIEF(__readlinkat_chk, dir, path, buf, n, buflen);
}

FZ_EXPORT int unlink(const char *path)
{
	return FZ_BRIEF(unlink, path);
}

FZ_EXPORT int unlinkat(int dir, const char *path, int flags)
{
	return FZ_BRIEF(unlinkat, dir, path, flags);
}

FZ_EXPORT int remove(const char *path)
{
	return FZ_BRIEF(remove, path);
}

FZ_EXPORT int rename(const char *from, const char *to)
{
	return FZ_BRIEF(rename, from, to);
}

FZ_EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return FZ_BRIEF(renameat, from_dir, from, to_dir, to);
}

FZ_EXPORT int renameat2(int from_dir, const char *from, int to_dir, const char *to,
			unsigned flags)
{
	return FZ_BRIEF(renameat2, from_dir, from, to_dir, to, flags);
}

FZ_EXPORT int mkdir(const char *path, mode_t mode)
{
	return FZ_BRIEF(mkdir, path, mode);
}

FZ_EXPORT int mkdirat(int dir, const char *path, mode_t mode)
{
	return FZ_BRIEF(mkdirat, dir, path, mode);
}

FZ_EXPORT int rmdir(const char *path)
{
	return FZ_BRIEF(rmdir, path);
}

FZ_EXPORT int mkfifo(const char *path, mode_t mode)
{
	return FZ_BRIEF(mkfifo, path, mode);
}

FZ_EXPORT int mkfifoat(int dir, const char *path, mode_t mode)
{
	return FZ_BRIEF(mkfifoat, dir, path, mode);
}

FZ_EXPORT int mknod(const char *path, mode_t mode, dev_t dev)
{
	return FZ_BRIEF(mknod, path, mode, dev);
}

FZ_EXPORT int mknodat(int dir, const char *path, mode_t mode, dev_t dev)
{
	return FZ_BRIEF(mknodat, dir, path, mode, dev);
}

FZ_EXPORT int truncate(const char *path, off_t size)
{
	return FZ_BRIEF(truncate, path, size);
}
FZ_EXPORT_ALIAS(truncate64, truncate);

/* ---- times --------------------------------------------------------------- */

FZ_EXPORT int utime(const char *path, const struct utimbuf *times)
{
	return FZ_BRIEF(utime, path, times);
}

FZ_EXPORT int utimes(const char *path, const struct timeval times[2])
{
	return FZ_BRIEF(utimes, path, times);
}

FZ_EXPORT int lutimes(const char *path, const struct timeval times[2])
{
	return FZ_BRIEF(lutimes, path, times);
}

FZ_EXPORT int futimesat(int dir, const char *path, const struct timeval times[2])
{
	return FZ_BRIEF(futimesat, dir, path, times);
}

FZ_EXPORT int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
	return FZ_BRIEF(utimensat, dir, path, times, flags);
}

FZ_EXPORT int futimens(int fd, const struct timespec times[2])
{
	return FZ_BRIEF(futimens, fd, times);
}

FZ_EXPORT int futimes(int fd, const struct timeval times[2])
{
	return FZ_BRIEF(futimes, fd, times);
}

/* ---- handles and mounts -------------------------------------------------- */

FZ_EXPORT int name_to_handle_at(int dir, const char *path, struct file_handle *handle,
				int *mount, int flags)
{
	return FZ_BRIEF(name_to_handle_at, dir, path, handle, mount, flags);
}

FZ_EXPORT int mount(const char *source, const char *target, const char *type,
		    unsigned long flags, const void *data)
{
	return FZ_BRIEF(mount, source, target, type, flags, data);
}

FZ_EXPORT int umount(const char *target)
{
	return FZ_BRIEF(umount, target);
}

FZ_EXPORT int umount2(const char *target, int flags)
{
	return FZ_BRIEF(umount2, target, flags);
}

FZ_EXPORT int swapon(const char *path, int flags)
{
	return FZ_BRIEF(swapon, path, flags);
}

FZ_EXPORT int swapoff(const char *path)
{
	return FZ_BRIEF(swapoff, path);
}
