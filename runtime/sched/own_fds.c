/* SPDX-License-Identifier: MIT */
#include "runtime/sched/own_fds.h"

#include <asm/errno.h>
#include <fcntl.h>

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
	return fz_own_fd_is_kept(fd);
}

bool fz_sched_program_has_fd(int fd)
{
	struct fz_fiber *self;
	uint32_t nested;
	bool ret;

	/* Most are closed: without the lock first. */
	if (fz_syscall2(__NR_fcntl, fd, F_GETFD) == -EBADF || fz_sched_owns_fd(fd))
		return false;
	self = fz_self();
	fz_signal_bar(self);
	nested = fz_bar_handlers();
	ret = fz_own_fd_is_others(fd);
	fz_allow_handlers(nested);
	fz_signal_allow(self);
	return ret;
}

int fz_sched_vacate_fd(int fd)
{
	int err = fz_own_fd_is_kept(fd) ? -EBUSY : fz_cpus_vacate_fd(fd, fz_own_fd_elsewhere);

	for (uint32_t i = 0; i < fz_sched.count && !err; i++)
		err = fz_backend_vacate_fd(&fz_sched.processors[i].backend, fd);
	return err;
}
