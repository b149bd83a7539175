/* SPDX-License-Identifier: MIT */
/*
 * preload/io/stat.c - what is known about a file: stat, statfs, extended attributes. All
 * are brief calls, for the reason given in preload/io/path.c.
 */
#include "preload/io/brief.h"

/* ---- stat ---------------------------------------------------------------- */

FZ_EXPORT_BRIEF(int, stat, (const char *path, struct stat *st), path, st)
FZ_EXPORT_ALIAS64(stat64, stat);
FZ_EXPORT_BRIEF(int, lstat, (const char *path, struct stat *st), path, st)
FZ_EXPORT_ALIAS64(lstat64, lstat);
FZ_EXPORT_BRIEF(int, fstat, (int fd, struct stat *st), fd, st)
FZ_EXPORT_ALIAS64(fstat64, fstat);
FZ_EXPORT_BRIEF(int, fstatat,
		(int dir, const char *path, struct stat *st, int flags), dir, path, st, flags)
FZ_EXPORT_ALIAS64(fstatat64, fstatat);
FZ_EXPORT_BRIEF(int, statx,
		(int dir, const char *path, int flags, unsigned mask, struct statx *st),
		dir, path, flags, mask, st)

/* ---- as programs built before glibc 2.33 call it ------------------------- */

FZ_EXPORT_BRIEF(int, __xstat, (int version, const char *path, struct stat *st), version, path, st)
FZ_EXPORT_ALIAS64(__xstat64, __xstat);
FZ_EXPORT_BRIEF(int, __lxstat, (int version, const char *path, struct stat *st), version, path, st)
FZ_EXPORT_ALIAS64(__lxstat64, __lxstat);
FZ_EXPORT_BRIEF(int, __fxstat, (int version, int fd, struct stat *st), version, fd, st)
FZ_EXPORT_ALIAS64(__fxstat64, __fxstat);
FZ_EXPORT_BRIEF(int, __fxstatat,
		(int version, int dir, const char *path, struct stat *st, int flags),
		version, dir, path, st, flags)
FZ_EXPORT_ALIAS64(__fxstatat64, __fxstatat);

/* ---- file systems -------------------------------------------------------- */

FZ_EXPORT_BRIEF(int, statfs, (const char *path, struct statfs *st), path, st)
FZ_EXPORT_ALIAS64(statfs64, statfs);
FZ_EXPORT_ALIAS(__statfs, statfs);
FZ_EXPORT_BRIEF(int, fstatfs, (int fd, struct statfs *st), fd, st)
FZ_EXPORT_ALIAS64(fstatfs64, fstatfs);
FZ_EXPORT_BRIEF(int, statvfs, (const char *path, struct statvfs *st), path, st)
FZ_EXPORT_ALIAS64(statvfs64, statvfs);
FZ_EXPORT_BRIEF(int, fstatvfs, (int fd, struct statvfs *st), fd, st)
FZ_EXPORT_ALIAS64(fstatvfs64, fstatvfs);

/* ---- extended attributes ------------------------------------------------- */

FZ_EXPORT_BRIEF(ssize_t, getxattr,
		(const char *path, const char *name, void *value, size_t n), path, name, value, n)
FZ_EXPORT_BRIEF(ssize_t, lgetxattr,
		(const char *path, const char *name, void *value, size_t n), path, name, value, n)
FZ_EXPORT_BRIEF(ssize_t, fgetxattr,
		(int fd, const char *name, void *value, size_t n), fd, name, value, n)
FZ_EXPORT_BRIEF(int, setxattr,
		(const char *path, const char *name, const void *value, size_t n, int flags),
		path, name, value, n, flags)
FZ_EXPORT_BRIEF(int, lsetxattr,
		(const char *path, const char *name, const void *value, size_t n, int flags),
		path, name, value, n, flags)
FZ_EXPORT_BRIEF(int, fsetxattr,
		(int fd, const char *name, const void *value, size_t n, int flags),
		fd, name, value, n, flags)
FZ_EXPORT_BRIEF(ssize_t, listxattr, (const char *path, char *list, size_t n), path, list, n)
FZ_EXPORT_BRIEF(ssize_t, llistxattr, (const char *path, char *list, size_t n), path, list, n)
FZ_EXPORT_BRIEF(ssize_t, flistxattr, (int fd, char *list, size_t n), fd, list, n)
FZ_EXPORT_BRIEF(int, removexattr, (const char *path, const char *name), path, name)
FZ_EXPORT_BRIEF(int, lremovexattr, (const char *path, const char *name), path, name)
FZ_EXPORT_BRIEF(int, fremovexattr, (int fd, const char *name), fd, name)
