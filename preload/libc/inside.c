/* SPDX-License-Identifier: MIT */
#include "preload/libc/inside.h"

#include <stdarg.h>

#include "preload/gate.h"
#include "preload/io/fd.h"
#include "preload/libc/redirect.h"
#include "preload/process/spawn.h"
#include "preload/real_call.h"
#include "runtime/fiber/parent.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/carrier.h"
#include "runtime/signal/signal.h"

struct fz_inside_real fz_inside_real;

/*
 * Does the caller run in a child process that must not touch the runtime (fz_redirect_in_child)? The child
 * of posix_spawn has the thread pointer of the fiber that made it.
 */
static bool is_in_child(void)
{
	return fz_self()->kind == FZ_KIND_FIBER && fz_redirect_in_child();
}

static bool is_in_runtime(void)
{
	/* relaxed: only this thread and its handlers write it. */
	return atomic_load_explicit(&fz_self()->in_runtime, memory_order_relaxed);
}

/*
 * Count the call. Returns the calling fiber, or NULL if libc's own call is to be made without an announcement.
 * Always inline, like fz_count_inside().
 */
__attribute__((always_inline)) static inline struct fz_fiber *enter_inside(enum fz_symbol symbol)
{
	struct fz_fiber *self = fz_self();

	if (is_in_runtime() || is_in_child())
		return NULL;
	fz_count_inside(symbol);
	return self->kind == FZ_KIND_FIBER ? self : NULL;
}

int fz_close_inside(int fd)
{
	struct fz_fiber *fiber = enter_inside(FZ_SYM_close);

	if (!fiber && (fz_self()->kind != FZ_KIND_FIBER || fz_redirect_in_child()))
		return fz_inside_real.close(fd);
	return fz_fd_close(fiber, fd, fz_inside_real.close);
}

int fz_open_inside(const char *path, int flags, ...)
{
	struct fz_fiber *self = fz_self();
	struct fz_blocked call;
	va_list args;
	mode_t mode;
	int fd;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (is_in_child() || is_in_runtime())
		return fz_inside_real.open(path, flags, mode);
	fz_count_inside(FZ_SYM_open);
	call = fz_block(self->kind == FZ_KIND_FIBER ? self : NULL, FZ_CALL_BRIEF | FZ_CALL_RESTARTS);
	fd = FZ_REPEAT(&call, fz_inside_real.open(path, flags, mode));
	return fz_fd_opened(&call, path, fd);
}

ssize_t fz_read_inside(int fd, void *buffer, size_t size)
{
	struct fz_blocked call = fz_block(enter_inside(FZ_SYM_read), FZ_CALL_BRIEF | FZ_CALL_RESTARTS);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_inside_real.read(fd, buffer, size)));
}

ssize_t fz_pread_inside(int fd, void *buffer, size_t size, off_t offset)
{
	struct fz_blocked call = fz_block(enter_inside(FZ_SYM_pread), FZ_CALL_BRIEF | FZ_CALL_RESTARTS);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_inside_real.pread(fd, buffer, size, offset)));
}

ssize_t fz_write_inside(int fd, const void *buffer, size_t size)
{
	struct fz_blocked call = fz_block(enter_inside(FZ_SYM_write), FZ_CALL_BRIEF | FZ_CALL_RESTARTS);

	return fz_block_end(&call, FZ_REPEAT(&call, fz_inside_real.write(fd, buffer, size)));
}

int fz_dup2_inside(int from, int to)
{
	return is_in_child() ? fz_real.dup2(from, to) :
			       FZ_COUNTED_INSIDE(FZ_SYM_dup2, dup2(from, to));
}

ssize_t fz_getdents64_inside(int fd, void *buffer, size_t size)
{
	return is_in_child() ? fz_real.getdents64(fd, buffer, size) :
			       FZ_COUNTED_INSIDE(FZ_SYM_getdents64, getdents64(fd, buffer, size));
}

/*
 * Does libc make this call as a part of one for which a body has announced a brief call? libc's stat,
 * lstat and fstat call fstatat. relaxed: only this thread and its handlers write the word.
 */
static bool is_in_body(void)
{
	const struct fz_fiber *self = fz_self();

	return self->kind == FZ_KIND_FIBER &&
	       atomic_load_explicit(&self->carrier->calls, memory_order_relaxed) &
		       FZ_CARRIER_IN_CALL;
}

int fz_fstat_inside(int fd, struct stat *st)
{
	if (is_in_child() || is_in_runtime() || is_in_body())
		return fz_real.fstat(fd, st);
	return FZ_COUNTED_INSIDE(FZ_SYM_fstat, fstat(fd, st));
}

int fz_fstatat_inside(int dir, const char *path, struct stat *st, int flags)
{
	if (is_in_child() || is_in_runtime() || is_in_body())
		return fz_real.fstatat(dir, path, st, flags);
	return FZ_COUNTED_INSIDE(FZ_SYM_fstatat, fstatat(dir, path, st, flags));
}

/* Read one word, whatever type the argument has, as libc does. */
int fz_fcntl_inside(int fd, int command, ...)
{
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	/* The child of posix_spawn uses these commands only. */
	if ((command == F_GETFD || command == F_SETFD) && is_in_child())
		return fz_real.fcntl(fd, command, arg);
	return FZ_COUNTED_INSIDE(FZ_SYM_fcntl, fcntl(fd, command, arg));
}

pid_t fz_wait4_inside(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_self();
	struct fz_blocked call;

	if (self->kind != FZ_KIND_FIBER || fz_signal_mask_is_known(self))
		return wait4(pid, status, options, usage);
	call = fz_block(options & WNOHANG ? NULL : self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.wait4(pid, status, options, usage));
}

/*
 * Unlike posix_spawn() of preload/process/spawn.c, this does not wait and try again if the process cannot be
 * made: the caller may hold locks of libc.
 */
int fz_posix_spawn_inside(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	bool hides;
	int ret;

	if (is_in_child() || is_in_runtime())
		return fz_real.posix_spawn(pid, path, actions, attr, argv, envp);
	fz_count_inside(FZ_SYM_posix_spawn);
	hides = fz_spawn_begins();
	ret = fz_real.posix_spawn(pid, path, actions, attr, argv, envp);
	fz_spawn_ends(hides);
	if (!ret)
		fz_child_made(*pid);
	return ret;
}
