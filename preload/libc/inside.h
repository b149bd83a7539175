/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_INSIDE_H
#define FZ_PRELOAD_LIBC_INSIDE_H

/* preload/libc/inside.h - bodies for calls that come from inside libc only (redirect.c). */

#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "runtime/base/base.h"

/* libc's internal functions that are no cancellation points, such as __close_nocancel. */
extern struct fz_inside_real {
	int (*close)(int fd);
	int (*open)(const char *path, int flags, ...);
	ssize_t (*read)(int fd, void *buffer, size_t size);
	ssize_t (*pread)(int fd, void *buffer, size_t size, off_t offset);
	ssize_t (*write)(int fd, const void *buffer, size_t size);
} fz_inside_real FZ_HIDDEN;

/* close() as called by fclose, closedir and the resolver. */
int fz_close_inside(int fd);

/* open() as called by opendir, and for files that libc itself reads. */
int fz_open_inside(const char *path, int flags, ...);

/*
 * read(), pread() and write() for files that libc itself uses, and for streams that were opened with the
 * mode "c". They are announced as brief.
 */
ssize_t fz_read_inside(int fd, void *buffer, size_t size);
ssize_t fz_pread_inside(int fd, void *buffer, size_t size, off_t offset);
ssize_t fz_write_inside(int fd, const void *buffer, size_t size);

int fz_dup2_inside(int from, int to);
int fz_fcntl_inside(int fd, int command, ...);

/* Called by opendir, by stdio, and for files that libc itself uses.  libc's stat and lstat call fstatat. */
int fz_fstat_inside(int fd, struct stat *st);
int fz_fstatat_inside(int dir, const char *path, struct stat *st, int flags);

/* Called by readdir, and by the child of posix_spawn if close_range is forbidden. */
ssize_t fz_getdents64_inside(int fd, void *buffer, size_t size);

/*
 * Called by wait, waitpid, system, pclose and wordexp, too. While libc has changed the signal mask of
 * this kernel thread, as system() does, the fiber stays on this kernel thread.
 */
pid_t fz_wait4_inside(pid_t pid, int *status, int options, struct rusage *usage);

/* Called by popen, system and wordexp, which never pass NULL for pid. */
int fz_posix_spawn_inside(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

#endif
