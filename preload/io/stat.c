/* SPDX-License-Identifier: MIT */
/*
 * preload/io/stat.c - what is known about a file: stat, statfs, extended attributes. All
 * announced as brief, for the reason given in preload/io/path.c.
 */
#include "preload/io/brief.h"

/* ---- stat ---------------------------------------------------------------- */

FZ_EXPORT int stat(const char *path, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_stat);
	int ret = fz_real.stat(path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(stat64, stat);

FZ_EXPORT int lstat(const char *path, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lstat);
	int ret = fz_real.lstat(path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(lstat64, lstat);

FZ_EXPORT int fstat(int fd, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fstat);
	int ret = fz_real.fstat(fd, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(fstat64, fstat);

FZ_EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fstatat);
	int ret = fz_real.fstatat(dir, path, st, flags);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(fstatat64, fstatat);

FZ_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_statx);
	int ret = fz_real.statx(dir, path, flags, mask, st);

	fz_leave_brief(self);
	return ret;
}

/* ---- as programs built before glibc 2.33 call it ------------------------- */

FZ_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___xstat);
	int ret = fz_real.__xstat(version, path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(__xstat64, __xstat);

FZ_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___lxstat);
	int ret = fz_real.__lxstat(version, path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(__lxstat64, __lxstat);

FZ_EXPORT int __fxstat(int version, int fd, struct stat *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___fxstat);
	int ret = fz_real.__fxstat(version, fd, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(__fxstat64, __fxstat);

FZ_EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM___fxstatat);
	int ret = fz_real.__fxstatat(version, dir, path, st, flags);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(__fxstatat64, __fxstatat);

/* ---- file systems -------------------------------------------------------- */

FZ_EXPORT int statfs(const char *path, struct statfs *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_statfs);
	int ret = fz_real.statfs(path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(statfs64, statfs);
FZ_EXPORT_ALIAS(__statfs, statfs);

FZ_EXPORT int fstatfs(int fd, struct statfs *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fstatfs);
	int ret = fz_real.fstatfs(fd, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(fstatfs64, fstatfs);

FZ_EXPORT int statvfs(const char *path, struct statvfs *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_statvfs);
	int ret = fz_real.statvfs(path, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(statvfs64, statvfs);

FZ_EXPORT int fstatvfs(int fd, struct statvfs *st)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fstatvfs);
	int ret = fz_real.fstatvfs(fd, st);

	fz_leave_brief(self);
	return ret;
}
FZ_EXPORT_ALIAS64(fstatvfs64, fstatvfs);

/* ---- extended attributes ------------------------------------------------- */

FZ_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_getxattr);
	ssize_t ret = fz_real.getxattr(path, name, value, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lgetxattr);
	ssize_t ret = fz_real.lgetxattr(path, name, value, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t fgetxattr(int fd, const char *name, void *value, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fgetxattr);
	ssize_t ret = fz_real.fgetxattr(fd, name, value, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int setxattr(const char *path, const char *name, const void *value, size_t n,
		       int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_setxattr);
	int ret = fz_real.setxattr(path, name, value, n, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int lsetxattr(const char *path, const char *name, const void *value, size_t n,
			int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lsetxattr);
	int ret = fz_real.lsetxattr(path, name, value, n, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fsetxattr);
	int ret = fz_real.fsetxattr(fd, name, value, n, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t listxattr(const char *path, char *list, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_listxattr);
	ssize_t ret = fz_real.listxattr(path, list, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t llistxattr(const char *path, char *list, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_llistxattr);
	ssize_t ret = fz_real.llistxattr(path, list, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT ssize_t flistxattr(int fd, char *list, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_flistxattr);
	ssize_t ret = fz_real.flistxattr(fd, list, n);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int removexattr(const char *path, const char *name)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_removexattr);
	int ret = fz_real.removexattr(path, name);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int lremovexattr(const char *path, const char *name)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_lremovexattr);
	int ret = fz_real.lremovexattr(path, name);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int fremovexattr(int fd, const char *name)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_fremovexattr);
	int ret = fz_real.fremovexattr(fd, name);

	fz_leave_brief(self);
	return ret;
}
