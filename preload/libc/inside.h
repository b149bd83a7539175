/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_INSIDE_H
#define FZ_PRELOAD_LIBC_INSIDE_H

/* preload/libc/inside.h - bodies for calls that come from inside libc only (redirect.c). */

#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "runtime/base/base.h"

/* libc's functions that are no cancellation points. */
extern struct fz_inside_real {
	int (*close)(int fd);
	int (*open)(const char *path, int flags, ...);
	ssize_t (*read)(int fd, void *buffer, size_t size);
	ssize_t (*pread)(int fd, void *buffer, size_t size, off_t offset);
	ssize_t (*write)(int fd, const void *buffer, size_t size);
} fz_inside_real FZ_HIDDEN;

/* close() of fclose, closedir and the resolver. */
int fz_close_inside(int fd);

/* open() of opendir, and of libc's own files. */
int fz_open_inside(const char *path, int flags, ...);

/* Of libc's own files, and of stdio opened with the mode "c": brief calls. */
ssize_t fz_read_inside(int fd, void *buffer, size_t size);
ssize_t fz_pread_inside(int fd, void *buffer, size_t size, off_t offset);
ssize_t fz_write_inside(int fd, const void *buffer, size_t size);

int fz_dup2_inside(int from, int to);
int fz_fcntl_inside(int fd, int command, ...);

/* opendir, stdio, and libc's own files.  libc's stat and lstat are made of fstatat. */
int fz_fstat_inside(int fd, struct stat *st);
int fz_fstatat_inside(int dir, const char *path, struct stat *st, int flags);

/* readdir; the child of posix_spawn, where close_range is forbidden. */
ssize_t fz_getdents64_inside(int fd, void *buffer, size_t size);

/*
 * wait, waitpid, system, pclose and wordexp arrive here, too. While libc has changed the signal
 * mask of this kernel thread (system), the fiber has to stay on this kernel thread.
 */
pid_t fz_wait4_inside(pid_t pid, int *status, int options, struct rusage *usage);

/* popen, system and wordexp; none of them passes NULL for pid. */
int fz_posix_spawn_inside(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

#endif
