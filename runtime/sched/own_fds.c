/* SPDX-License-Identifier: MIT */
#include "runtime/sched/own_fds.h"

#include <asm/errno.h>
#include <fcntl.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/cpus.h"
#include "runtime/base/sys.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

uint32_t fz_sched_fd_count(void)
{
	return fz_sched.count * FZ_BACKEND_FDS + fz_cpus_fd_count();
}

int fz_sched_fd(uint32_t i)
{
	if (i < fz_cpus_fd_count())
		return fz_cpus_fd(i);
	i -= fz_cpus_fd_count();
	return fz_backend_fd(&fz_sched.processors[i / FZ_BACKEND_FDS].backend,
			     i % FZ_BACKEND_FDS);
}

bool fz_sched_owns_fd(int fd)
{
	if (fd < 0)
		return false;
	for (uint32_t i = 0; i < fz_sched_fd_count(); i++)
		if (fz_sched_fd(i) == fd)
			return true;
	return fz_kept_fd_is(fd);
}

struct barred {
	struct fz_fiber *self;
	uint32_t nested;
};

/*
 * Bracket around a lock of own_fd.c or kept_fd.c, for callers outside the runtime, where handlers
 * must be barred, too.  allow() lets a native thread look for signals that came meanwhile.
 */
static struct barred bar(void)
{
	struct barred b = { .self = fz_self() };

	fz_signal_bar(b.self);
	b.nested = fz_bar_handlers();
	return b;
}

static void allow(struct barred b)
{
	fz_allow_handlers(b.nested);
	fz_signal_allow(b.self);
}

bool fz_sched_program_has_fd(int fd)
{
	struct barred b;
	bool ret;

	/* Most descriptors are closed: try without the lock first. */
	if (fz_syscall2(__NR_fcntl, fd, F_GETFD) == -EBADF || fz_sched_owns_fd(fd))
		return false;
	b = bar();
	ret = fz_kept_fd_is_others(fd);
	allow(b);
	return ret;
}

void fz_sched_hold_limit(void)
{
	const struct barred b = bar();

	fz_own_fd_hold_limit();
	allow(b);
}

void fz_sched_release_limit(void)
{
	const struct barred b = bar();

	fz_own_fd_release_limit();
	allow(b);
}

void fz_sched_copying_ends(void)
{
	const struct barred b = bar();

	fz_kept_fd_copying_ends();
	allow(b);
}

int fz_sched_vacate_fd(int fd)
{
	int err = fz_kept_fd_is(fd) ? -EBUSY : fz_cpus_vacate_fd(fd, fz_own_fd_elsewhere);

	for (uint32_t i = 0; i < fz_sched.count && !err; i++)
		err = fz_backend_vacate_fd(&fz_sched.processors[i].backend, fd);
	return err;
}
