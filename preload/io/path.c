/* SPDX-License-Identifier: MIT */
/*
 * preload/io/path.c - files by name: links, directories, modes, times, mounts.
 *
 * The ring would run some of these calls in a worker thread each, which costs more
 * than most of the calls themselves.  At worst they wait for a disk or a file
 * server, so each is a brief call.
 */
#include "preload/io/brief.h"

/* ---- by name ------------------------------------------------------------- */

FZ_EXPORT_BRIEF(int, access, (const char *path, int mode), path, mode)
FZ_EXPORT_BRIEF(int, faccessat,
		(int dir, const char *path, int mode, int flags), dir, path, mode, flags)
FZ_EXPORT_BRIEF(int, eaccess, (const char *path, int mode), path, mode)
FZ_EXPORT_ALIAS(euidaccess, eaccess);
FZ_EXPORT_BRIEF(int, chdir, (const char *path), path)
FZ_EXPORT_BRIEF(int, chroot, (const char *path), path)
FZ_EXPORT_BRIEF(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), fd, path, mask)
FZ_EXPORT_BRIEF(int, chmod, (const char *path, mode_t mode), path, mode)
FZ_EXPORT_BRIEF(int, lchmod, (const char *path, mode_t mode), path, mode)
FZ_EXPORT_BRIEF(int, fchmodat,
		(int dir, const char *path, mode_t mode, int flags), dir, path, mode, flags)
FZ_EXPORT_BRIEF(int, chown, (const char *path, uid_t owner, gid_t group), path, owner, group)
FZ_EXPORT_BRIEF(int, lchown, (const char *path, uid_t owner, gid_t group), path, owner, group)
FZ_EXPORT_BRIEF(int, fchownat,
		(int dir, const char *path, uid_t owner, gid_t group, int flags),
		dir, path, owner, group, flags)
FZ_EXPORT_BRIEF(int, link, (const char *from, const char *to), from, to)
FZ_EXPORT_BRIEF(int, linkat,
		(int from_dir, const char *from, int to_dir, const char *to, int flags),
		from_dir, from, to_dir, to, flags)
FZ_EXPORT_BRIEF(int, symlink, (const char *target, const char *path), target, path)
FZ_EXPORT_BRIEF(int, symlinkat, (const char *target, int dir, const char *path), target, dir, path)
FZ_EXPORT_BRIEF(ssize_t, readlink, (const char *path, char *buf, size_t n), path, buf, n)
FZ_EXPORT_BRIEF(ssize_t, __readlink_chk,
		(const char *path, char *buf, size_t n, size_t buflen), path, buf, n, buflen)
FZ_EXPORT_BRIEF(ssize_t, readlinkat,
		(int dir, const char *path, char *buf, size_t n), dir, path, buf, n)
FZ_EXPORT_BRIEF(ssize_t, __readlinkat_chk,
		(int dir, const char *path, char *buf, size_t n, size_t buflen),
		dir, path, buf, n, buflen)
FZ_EXPORT_BRIEF(int, unlink, (const char *path), path)
FZ_EXPORT_BRIEF(int, unlinkat, (int dir, const char *path, int flags), dir, path, flags)
FZ_EXPORT_BRIEF(int, remove, (const char *path), path)
FZ_EXPORT_BRIEF(int, rename, (const char *from, const char *to), from, to)
FZ_EXPORT_BRIEF(int, renameat,
		(int from_dir, const char *from, int to_dir, const char *to),
		from_dir, from, to_dir, to)
FZ_EXPORT_BRIEF(int, renameat2,
		(int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
		from_dir, from, to_dir, to, flags)
FZ_EXPORT_BRIEF(int, mkdir, (const char *path, mode_t mode), path, mode)
FZ_EXPORT_BRIEF(int, mkdirat, (int dir, const char *path, mode_t mode), dir, path, mode)
FZ_EXPORT_BRIEF(int, rmdir, (const char *path), path)
FZ_EXPORT_BRIEF(int, mkfifo, (const char *path, mode_t mode), path, mode)
FZ_EXPORT_BRIEF(int, mkfifoat, (int dir, const char *path, mode_t mode), dir, path, mode)
FZ_EXPORT_BRIEF(int, mknod, (const char *path, mode_t mode, dev_t dev), path, mode, dev)
FZ_EXPORT_BRIEF(int, mknodat,
		(int dir, const char *path, mode_t mode, dev_t dev), dir, path, mode, dev)
FZ_EXPORT_BRIEF(int, truncate, (const char *path, off_t size), path, size)
FZ_EXPORT_ALIAS(truncate64, truncate);

/* ---- times --------------------------------------------------------------- */

FZ_EXPORT_BRIEF(int, utime, (const char *path, const struct utimbuf *times), path, times)
FZ_EXPORT_BRIEF(int, utimes, (const char *path, const struct timeval times[2]), path, times)
FZ_EXPORT_BRIEF(int, lutimes, (const char *path, const struct timeval times[2]), path, times)
FZ_EXPORT_BRIEF(int, futimesat,
		(int dir, const char *path, const struct timeval times[2]), dir, path, times)
FZ_EXPORT_BRIEF(int, utimensat,
		(int dir, const char *path, const struct timespec times[2], int flags),
		dir, path, times, flags)
FZ_EXPORT_BRIEF(int, futimens, (int fd, const struct timespec times[2]), fd, times)
FZ_EXPORT_BRIEF(int, futimes, (int fd, const struct timeval times[2]), fd, times)

/* ---- handles and mounts -------------------------------------------------- */

FZ_EXPORT_BRIEF(int, name_to_handle_at,
		(int dir, const char *path, struct file_handle *handle, int *mount, int flags),
		dir, path, handle, mount, flags)
FZ_EXPORT_BRIEF(int, mount,
		(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data),
		source, target, type, flags, data)
FZ_EXPORT_BRIEF(int, umount, (const char *target), target)
FZ_EXPORT_BRIEF(int, umount2, (const char *target, int flags), target, flags)
FZ_EXPORT_BRIEF(int, swapon, (const char *path, int flags), path, flags)
FZ_EXPORT_BRIEF(int, swapoff, (const char *path), path)
