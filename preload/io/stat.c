/* SPDX-License-Identifier: MIT */
/*
 * preload/io/stat.c - what is known about a file: stat, statfs, extended attributes. All
 * announced as brief, for the reason given in preload/io/path.c.
 */
#include "preload/io/brief.h"

/* ---- stat ---------------------------------------------------------------- */

FZ_EXPORT int stat(const char *path, struct stat *st)
{
	return FZ_BRIEF(stat, path, st);
}
FZ_EXPORT_ALIAS64(stat64, stat);

FZ_EXPORT int lstat(const char *path, struct stat *st)
{
	return FZ_BRIEF(lstat, path, st);
}
FZ_EXPORT_ALIAS64(lstat64, lstat);

FZ_EXPORT int fstat(int fd, struct stat *st)
{
	return FZ_BRIEF(fstat, fd, st);
}
FZ_EXPORT_ALIAS64(fstat64, fstat);

FZ_EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return FZ_BRIEF(fstatat, dir, path, st, flags);
}
FZ_EXPORT_ALIAS64(fstatat64, fstatat);

FZ_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	return FZ_BRIEF(statx, dir, path, flags, mask, st);
}

/* ---- as programs built before glibc 2.33 call it ------------------------- */

FZ_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	return FZ_BRIEF(__xstat, version, path, st);
}
FZ_EXPORT_ALIAS64(__xstat64, __xstat);

FZ_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
	return FZ_BRIEF(__lxstat, version, path, st);
}
FZ_EXPORT_ALIAS64(__lxstat64, __lxstat);

FZ_EXPORT int __fxstat(int version, int fd, struct stat *st)
{
	return FZ_BRIEF(__fxstat, version, fd, st);
}
FZ_EXPORT_ALIAS64(__fxstat64, __fxstat);

FZ_EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	return FZ_BRIEF(__fxstatat, version, dir, path, st, flags);
}
FZ_EXPORT_ALIAS64(__fxstatat64, __fxstatat);

/* ---- file systems -------------------------------------------------------- */

FZ_EXPORT int statfs(const char *path, struct statfs *st)
{
	return FZ_BRIEF(statfs, path, st);
}
FZ_EXPORT_ALIAS64(statfs64, statfs);
FZ_EXPORT_ALIAS(__statfs, statfs);

FZ_EXPORT int fstatfs(int fd, struct statfs *st)
{
	return FZ_BRIEF(fstatfs, fd, st);
}
FZ_EXPORT_ALIAS64(fstatfs64, fstatfs);

FZ_EXPORT int statvfs(const char *path, struct statvfs *st)
{
	return FZ_BRIEF(statvfs, path, st);
}
FZ_EXPORT_ALIAS64(statvfs64, statvfs);

FZ_EXPORT int fstatvfs(int fd, struct statvfs *st)
{
	return FZ_BRIEF(fstatvfs, fd, st);
}
FZ_EXPORT_ALIAS64(fstatvfs64, fstatvfs);

/* ---- extended attributes ------------------------------------------------- */

FZ_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
	return FZ_BRIEF(getxattr, path, name, value, n);
}

FZ_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
	return FZ_BRIEF(lgetxattr, path, name, value, n);
}

FZ_EXPORT ssize_t fgetxattr(int fd, const char *name, void *value, size_t n)
{
	return FZ_BRIEF(fgetxattr, fd, name, value, n);
}

FZ_EXPORT int setxattr(const char *path, const char *name, const void *value, size_t n,
		       int flags)
{
	return FZ_BRIEF(setxattr, path, name, value, n, flags);
}

FZ_EXPORT int lsetxattr(const char *path, const char *name, const void *value, size_t n,
			int flags)
{
	return FZ_BRIEF(lsetxattr, path, name, value, n, flags);
}

FZ_EXPORT int fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
	return FZ_BRIEF(fsetxattr, fd, name, value, n, flags);
}

FZ_EXPORT ssize_t listxattr(const char *path, char *list, size_t n)
{
	return FZ_BRIEF(listxattr, path, list, n);
}

FZ_EXPORT ssize_t llistxattr(const char *path, char *list, size_t n)
{
	return FZ_BRIEF(llistxattr, path, list, n);
}

FZ_EXPORT ssize_t flistxattr(int fd, char *list, size_t n)
{
	return FZ_BRIEF(flistxattr, fd, list, n);
}

FZ_EXPORT int removexattr(const char *path, const char *name)
{
	return FZ_BRIEF(removexattr, path, name);
}

FZ_EXPORT int lremovexattr(const char *path, const char *name)
{
	return FZ_BRIEF(lremovexattr, path, name);
}

FZ_EXPORT int fremovexattr(int fd, const char *name)
{
	return FZ_BRIEF(fremovexattr, fd, name);
}
