/* SPDX-License-Identifier: MIT */
/*
 * preload/io/fd.c - makes, duplicates, changes and closes descriptors.
 *
 * Keeps runtime/io/fdtab.h up to date, and hides the library's own descriptors (rings and their
 * eventfds): for the program these numbers are not open.
 */
#include "preload/io/fd.h"

#include "preload/gate.h"
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "preload/thread/kernel_state.h"
#include "runtime/backend/kept_fd.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/op.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/retreat.h"
#include "runtime/sched/sched.h"

#include <linux/close_range.h>
#include <stdarg.h>

#ifndef F_OFD_SETLKW
#define F_OFD_SETLKW 38
#endif

/*
 * A descriptor is about to be closed or replaced: calls that wait for it get a private copy, queued
 * requests are submitted, and what fdtab remembers of it is dropped.
 */
static void forget(int fd)
{
	struct fz_fiber *self = fz_self();

	if (!fz_fdtab_is_unshared() &&
	    !atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		fz_op_flush_fd(self, fd);
	fz_fdtab_set(fd, FZ_FD_UNKNOWN);
}

/* Called after a descriptor has been closed or replaced. Keeps errno. */
static void closed(int fd)
{
	struct fz_fiber *self = fz_self();

	if (!fz_fdtab_is_unshared() &&
	    !atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		fz_op_closed(self, fd);
}

int fz_fd_opened(const struct fz_blocked *call, const char *path, int fd)
{
	fz_block_end(call, fd);
	if (fd < 0)
		return fd;
	/* Drop hints of fdtab, in case this number was closed without the library's knowledge. */
	fz_fdtab_opened(fd);
	/* The rings must be given up before the program serves a file that it maps itself. */
	if (FZ_UNLIKELY(path && !__builtin_strcmp(path, "/dev/fuse")))
		fz_retreat_before_faults(FZ_FDTAB_SERVES_FILES);
	return fd;
}

int fz_fd_close(struct fz_fiber *self, int fd, int (*real)(int fd))
{
	struct fz_blocked call;
	int ret;

	forget(fd);
	call = fz_block(self, FZ_CALL_BRIEF);
	/* Not repeated: the descriptor is closed even if close() fails with EINTR. */
	ret = real(fd);
	/* A file server was interrupted, but no handler of the fiber has run: natively there is no error. */
	if (FZ_UNLIKELY(ret == -1 && errno == EINTR) && fz_block_undisturbed(&call)) {
		errno = call.saved_errno;
		ret = 0;
	}
	fz_block_end(&call, ret);
	closed(fd);
	return ret;
}

FZ_EXPORT int close(int fd)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_close);

	if (FZ_UNLIKELY(fz_sched_owns_fd(fd)))
		return (int)fz_leave(-EBADF);
	return fz_fd_close(self, fd, fz_real.close);
}
FZ_EXPORT_ALIAS(__close, close);

/* The lowest own descriptor that is >= fd, or UINT_MAX. */
static unsigned next_own(unsigned fd)
{
	unsigned best = ~0u, kept;

	for (uint32_t i = 0; i < fz_sched_fd_count(); i++) {
		unsigned own = (unsigned)fz_sched_fd(i);

		if (own >= fd && own < best)
			best = own;
	}
	kept = fz_kept_fd_next(fd);
	return kept < best ? kept : best;
}

FZ_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	const unsigned begin = first;
	struct fz_fiber *self;
	bool closes;

	fz_enter(FZ_SYM_close_range);
	self = fz_self();
	if (first > last)
		return fz_real.close_range(first, last, flags);
	if (flags & CLOSE_RANGE_UNSHARE) {
		int ret;

		fz_wire_for_state();
		/* For this range, which has no open descriptor, the call only unshares the table. */
		ret = fz_real.close_range(~0u, ~0u, flags);
		if (ret)
			return ret;
		fz_files_are_own();
		flags &= ~(int)CLOSE_RANGE_UNSHARE;
	}
	closes = !(flags & CLOSE_RANGE_CLOEXEC) && !fz_fdtab_is_unshared() &&
		 !atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
	if (closes)
		fz_op_flush_range(self, first, last);
	while (first <= last) {
		unsigned own = next_own(first);
		unsigned end = own <= last ? own - 1 : last;

		if (!(flags & CLOSE_RANGE_CLOEXEC))
			fz_fdtab_forget_range(first, end);
		if (own != first) {
			int ret = fz_real.close_range(first, end, flags);

			if (ret)
				return ret;
		}
		if (own >= last)
			break;
		first = own + 1;
	}
	if (closes)
		fz_op_closed_range(self, begin, last);
	return 0;
}

FZ_EXPORT void closefrom(int first)
{
	fz_enter(FZ_SYM_closefrom);
	if (first < 0)
		first = 0;
	if (close_range((unsigned)first, ~0u, 0) != 0)
		fz_real.closefrom(first);
}

FZ_EXPORT int dup(int fd)
{
	int copy;

	fz_enter(FZ_SYM_dup);
	if (fz_sched_owns_fd(fd))
		return (int)fz_leave(-EBADF);
	copy = fz_real.dup(fd);
	if (copy >= 0) {
		fz_fdtab_share(fd);
		fz_fdtab_opened(copy);
	}
	return copy;
}

/* Prepare for making number `to` a copy of `from`. Returns 0 or -errno. */
static int prepare_dup(int from, int to)
{
	if (fz_sched_owns_fd(from))
		return -EBADF;
	if (from == to)
		return 0;
	if (fz_sched_owns_fd(to) && (fz_fdtab_is_unshared() || fz_sched_vacate_fd(to) < 0))
		return -EBUSY;
	fz_fdtab_share(from);
	forget(to);
	return 0;
}

/* Called after dup2() or dup3(), which has returned copy. */
static void replaced(int to, int copy)
{
	closed(to);
	fz_fdtab_raise(copy);
}

FZ_EXPORT int dup2(int from, int to)
{
	int err, ret;

	fz_enter(FZ_SYM_dup2);
	err = prepare_dup(from, to);
	if (err)
		return (int)fz_leave(err);
	ret = fz_real.dup2(from, to);
	replaced(to, ret);
	return ret;
}
FZ_EXPORT_ALIAS(__dup2, dup2);

FZ_EXPORT int dup3(int from, int to, int flags)
{
	int err, ret;

	fz_enter(FZ_SYM_dup3);
	err = prepare_dup(from, to);
	if (err)
		return (int)fz_leave(err);
	ret = fz_real.dup3(from, to, flags);
	replaced(to, ret);
	return ret;
}

/*
 * Has an attempt to lock without waiting failed because the lock is held, so that the real call must wait? If
 * so, errno is as before the attempt. ret: the result of the attempt.
 */
static bool must_wait(const struct fz_blocked *tried, int ret)
{
	if (!tried->call.self || ret == 0 || (errno != EAGAIN && errno != EACCES))
		return false;
	errno = tried->saved_errno;
	return true;
}

/*
 * Lock a file: try first; if the lock is held by another owner, hand off the processor and wait. Any
 * carrier may take the lock, since its owner is the process or the open file, not the kernel thread.
 */
static int lock_or_announce(struct fz_fiber *self, int fd, int command, void *lock)
{
	const int tries = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
	struct fz_blocked call;
	int ret;

	/* F_SETLK is no cancellation point of libc's, but F_SETLKW is one. */
	fz_gate_cancel(self);
	call = fz_block(self, FZ_CALL_BRIEF);
	ret = fz_block_end(&call, FZ_REPEAT(&call, fz_real.fcntl(fd, tries, lock)));
	if (!must_wait(&call, ret))
		return ret;
	call = fz_block(self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.fcntl(fd, command, lock));
}

/* Does the command ask the file system, which may be a file server that is slow to answer? */
static bool is_locking(int command)
{
	switch (command) {
	case F_GETLK:
	case F_SETLK:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
		return true;
	default:
		return false;
	}
}

FZ_EXPORT int fcntl(int fd, int command, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_fcntl);
	struct fz_blocked call;
	va_list args;
	void *arg;
	int ret;

	/* Read one word, whatever type the argument has, as libc does. */
	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (fz_sched_owns_fd(fd))
		return (int)fz_leave(-EBADF);
	if (self && (command == F_SETLKW || command == F_OFD_SETLKW))
		return lock_or_announce(self, fd, command, arg);
	if (command == F_SETFL)
		fz_fdtab_nonblocking_begins(fd);
	call = fz_block(is_locking(command) ? self : NULL, FZ_CALL_BRIEF);
	ret = fz_block_end(&call, FZ_REPEAT(&call, fz_real.fcntl(fd, command, arg)));
	if (command == F_SETFL)
		fz_fdtab_nonblocking_ends(fd, ret >= 0, ((intptr_t)arg & O_NONBLOCK) != 0);
	if (ret < 0)
		return ret;
	switch (command) {
	case F_SETFL:
		/* O_DIRECT or O_APPEND may have changed: forget what fdtab knows. */
		if ((fz_fdtab_get(fd) & FZ_FD_KIND_MASK) == FZ_FD_FILE)
			fz_fdtab_set(fd, FZ_FD_UNKNOWN);
		break;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		fz_fdtab_share(fd);
		fz_fdtab_opened(ret);
		break;
	default:
		break;
	}
	return ret;
}
FZ_EXPORT_ALIAS(fcntl64, fcntl);
FZ_EXPORT_ALIAS(__fcntl, fcntl);

static void note_pipe(const int fds[2], int flags)
{
	uint32_t info = FZ_FD_PIPE | FZ_FD_OURS | (flags & O_NONBLOCK ? FZ_FD_NONBLOCK : 0);

	fz_fdtab_set(fds[0], info);
	fz_fdtab_set(fds[1], info);
}

FZ_EXPORT int pipe(int fds[2])
{
	int ret;

	fz_enter(FZ_SYM_pipe);
	ret = fz_real.pipe(fds);
	if (ret == 0)
		note_pipe(fds, 0);
	return ret;
}
FZ_EXPORT_ALIAS(__pipe, pipe);

FZ_EXPORT int pipe2(int fds[2], int flags)
{
	int ret;

	fz_enter(FZ_SYM_pipe2);
	ret = fz_real.pipe2(fds, flags);
	if (ret == 0)
		note_pipe(fds, flags);
	return ret;
}

FZ_EXPORT int flock(int fd, int operation)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_flock);
	const bool waits = self && !(operation & (LOCK_NB | LOCK_UN));
	const int tries = waits ? operation | LOCK_NB : operation;
	struct fz_blocked call = fz_block(self, FZ_CALL_BRIEF);
	int ret = (int)fz_block_end(&call, FZ_REPEAT(&call, fz_real.flock(fd, tries)));

	if (!waits || !must_wait(&call, ret))
		return ret;
	call = fz_block(self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.flock(fd, operation));
}

FZ_EXPORT int lockf(int fd, int command, off_t n)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_lockf);
	const bool waits = self && command == F_LOCK;
	struct fz_blocked call = fz_block(self, FZ_CALL_BRIEF);
	int ret = (int)fz_block_end(&call, FZ_REPEAT(&call, fz_real.lockf(fd, waits ? F_TLOCK : command,
									  n)));

	if (!waits || !must_wait(&call, ret))
		return ret;
	call = fz_block(self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.lockf(fd, command, n));
}
FZ_EXPORT_ALIAS(lockf64, lockf);
