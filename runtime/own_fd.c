/* SPDX-License-Identifier: MIT */
#include "runtime/own_fd.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "runtime/sched.h"
#include "runtime/sys.h"

int fz_own_fd_copy(int fd)
{
	struct rlimit old, wide;
	long limit = 1024, high;
	bool widened = false;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&old) == 0) {
		limit = old.rlim_cur > 1 << 20 ? 1 << 20 : (long)old.rlim_cur;
		wide = old;
		wide.rlim_cur = old.rlim_cur + 1024 < old.rlim_max ? old.rlim_cur + 1024 :
								     old.rlim_max;
		if (wide.rlim_cur > old.rlim_cur)
			widened = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE,
					      (long)&wide, 0) == 0;
	}
	high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, widened ? limit : limit - 64);
	/* No limit to raise, and many that wait with what is closed: as high as there is room. */
	for (limit /= 2; high < 0 && high != -EBADF && limit > 2; limit /= 2)
		high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, limit);
	if (widened)
		fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)&old, 0);
	return (int)high;
}

int fz_own_fd_raise(int fd)
{
	int high = fz_own_fd_copy(fd);

	/* No room up there: where it is, it works too. */
	if (high < 0)
		return fd;
	fz_syscall1(__NR_close, fd);
	return high;
}

int fz_own_fd_elsewhere(int fd)
{
	long copy = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1);

	if (copy == -EINVAL || copy == -EMFILE)
		copy = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	return (int)copy;
}

uint32_t fz_sched_fd_count(void)
{
	return fz_sched.count * FZ_BACKEND_FDS;
}

int fz_sched_fd(uint32_t i)
{
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
	return false;
}

int fz_sched_vacate_fd(int fd)
{
	int err = 0;

	for (uint32_t i = 0; i < fz_sched.count && !err; i++)
		err = fz_backend_vacate_fd(&fz_sched.processors[i].backend, fd);
	return err;
}
