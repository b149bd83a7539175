/* SPDX-License-Identifier: MIT */
#include "runtime/backend/own_fd.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "runtime/base/lock.h"
#include "runtime/base/sys.h"

enum {
	/*
	 * Where own descriptors begin if the limit is high.  The kernel's table of descriptors has 8 bytes for each
	 * number, up to the power of two above the highest one in use, and every fork copies it: own descriptors
	 * just below a limit of a million would make it 8 MB.
	 */
	HIGH = (1 << 12) - 1024,
	LIMIT_IS_HIGH = (1 << 14) - 1024,
	ROOM = 64,		/* numbers that we take below a limit that cannot be raised */
};

/* Held while RLIMIT_NOFILE is raised for a moment. */
static struct fz_lock limit_lock = FZ_LOCK(FZ_RANK_LIMIT);
/* Number of threads that are making processes, which must not inherit a raised limit.  Guarded by limit_lock. */
static uint32_t limit_holders;
static bool parents;			/* this child shares its table of descriptors with the parent */

void fz_own_fd_close(int fd)
{
	if (!parents)
		fz_syscall1(__NR_close, fd);
}

/* fz_own_fd_copy_within() with limit_lock held. */
static int copy_locked(int fd, bool raises)
{
	struct rlimit old, wide, now;
	long limit = 1024, high;
	bool widened = false, high_enough = false;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&old) == 0) {
		high_enough = old.rlim_cur > LIMIT_IS_HIGH + ROOM;
		limit = high_enough ? HIGH : (long)old.rlim_cur;
		wide = old;
		wide.rlim_cur = old.rlim_cur + 1024 < old.rlim_max ? old.rlim_cur + 1024 :
								     old.rlim_max;
		if (raises && !limit_holders && !high_enough && wide.rlim_cur > old.rlim_cur)
			widened = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE,
					      (long)&wide, 0) == 0;
	}
	high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC,
			   widened || high_enough ? limit : limit - ROOM);
	/*
	 * The limit cannot be raised, and copies of closed descriptors fill the numbers just below
	 * it: look for a free number from half of the limit on, then from a quarter, and so on.
	 */
	for (limit /= 2; high < 0 && high != -EBADF && limit > 2; limit /= 2)
		high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, limit);
	/* Restore the limit, unless the program has set another one meanwhile. */
	if (widened && fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&now) == 0 &&
	    now.rlim_cur == wide.rlim_cur) {
		now.rlim_cur = old.rlim_cur;
		fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)&now, 0);
	}
	return (int)high;
}

int fz_own_fd_copy(int fd)
{
	return FZ_FAULT(dup) ? -EMFILE : fz_own_fd_copy_within(fd, true);
}

int fz_own_fd_copy_within(int fd, bool raises)
{
	int copy;

	fz_lock_acquire(&limit_lock);
	copy = copy_locked(fd, raises);
	fz_lock_release(&limit_lock);
	return copy;
}

void fz_own_fd_hold_limit(void)
{
	fz_lock_acquire(&limit_lock);
	limit_holders++;
	fz_lock_release(&limit_lock);
}

void fz_own_fd_release_limit(void)
{
	fz_lock_acquire(&limit_lock);
	/*
	 * 0 in a fork's child, if a handler has made it since fz_own_fd_hold_limit():
	 * fz_own_fd_begin_in_child() has reset the count there.
	 */
	limit_holders -= limit_holders > 0;
	fz_lock_release(&limit_lock);
}

bool fz_own_fd_limit_is_held(void)
{
	bool held;

	fz_lock_acquire(&limit_lock);
	held = limit_holders > 0;
	fz_lock_release(&limit_lock);
	return held;
}

void fz_own_fd_begin_in_child(bool shares)
{
	parents = shares;
	fz_lock_init(&limit_lock, FZ_RANK_LIMIT);
	limit_holders = 0;
}

void fz_own_fd_end_in_child(void)
{
	parents = false;
}

int fz_own_fd_raise(int fd)
{
	int high = fz_own_fd_copy(fd);

	/* No high number is free: keep the descriptor where it is. */
	if (high < 0)
		return fd;
	fz_syscall1(__NR_close, fd);
	return high;
}

int fz_own_fd_elsewhere(int fd)
{
	long copy = FZ_FAULT(dup) ? -EMFILE : fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1);

	if (copy == -EINVAL || copy == -EMFILE)
		copy = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	return (int)copy;
}

uint32_t fz_own_fd_allowed(uint32_t wanted)
{
	enum { SHARE = 4 };
	struct rlimit limit;
	uint32_t unused = 0;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit))
		return wanted;
	/* Few are open, so that this ends soon even if the limit is high. */
	for (rlim_t fd = 0; fd < limit.rlim_max && unused < SHARE * wanted; fd++) {
		long flags = fz_syscall2(__NR_fcntl, (long)fd, F_GETFD);

		/* A filter forbids to ask. */
		if (flags < 0 && flags != -EBADF)
			return wanted;
		unused += flags < 0;
	}
	return unused / SHARE < wanted ? unused / SHARE : wanted;
}
