/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/poll.c - system calls by number: poll, select, epoll. Calls with invalid
 * arguments go to the kernel, which refuses them.
 */
#include "preload/syscall/families.h"
#include "preload/time.h"

/*
 * Store the remaining time, as the kernel does and libc's function does not.  In memory that is
 * read-only the timeout stays as it is.
 */
static void store_remaining(struct timespec *timeout, fz_nsec begin, fz_nsec span)
{
	fz_nsec spent = fz_now() - begin;

	fz_timespec_store(timeout, fz_timespec_of(spent < span ? span - spent : 0));
}

static long kernel_ppoll(const long *a)
{
	struct timespec *timeout = (void *)a[2];
	fz_nsec begin = fz_now(), span;
	int ret;

	if ((a[3] && a[4] != FZ_KERNEL_SIGSET_SIZE) ||
	    (timeout && !fz_timespec_readable(timeout)))
		return fz_syscall_real(SYS_ppoll, a);
	span = timeout ? fz_timespec_nsec(timeout) : 0;
	ret = ppoll((struct pollfd *)a[0], (nfds_t)a[1], timeout, (void *)a[3]);
	if (span && (ret >= 0 || errno != EINVAL))
		store_remaining(timeout, begin, span);
	return ret;
}

#ifdef SYS_select
/*
 * libc's function stores the remaining time as the kernel does, but would crash where the memory is
 * read-only: it gets a copy of the timeout.
 */
static long kernel_select(const long *a)
{
	struct timeval *timeout = (void *)a[4], left = { 0, 0 };
	int ret;

	if (timeout && (!fz_sys_readable(&timeout->tv_sec) || !fz_sys_readable(&timeout->tv_usec)))
		return fz_syscall_real(SYS_select, a);
	if (timeout)
		left = *timeout;
	ret = select((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3],
		     timeout ? &left : NULL);
	if (timeout && (left.tv_sec != timeout->tv_sec || left.tv_usec != timeout->tv_usec) &&
	    fz_sys_writable(&timeout->tv_sec) && fz_sys_writable(&timeout->tv_usec))
		*timeout = left;
	return ret;
}
#endif

static long kernel_pselect(const long *a)
{
	const struct mask {
		const sigset_t *set;
		size_t size;
	} *mask = (void *)a[5];
	struct timespec *timeout = (void *)a[4];
	fz_nsec begin = fz_now(), span;
	int ret;

	if ((timeout && !fz_timespec_readable(timeout)) ||
	    (mask && (!fz_sys_readable(&mask->set) || !fz_sys_readable(&mask->size) ||
		      (mask->set && mask->size != FZ_KERNEL_SIGSET_SIZE))))
		return fz_syscall_real(SYS_pselect6, a);
	span = timeout ? fz_timespec_nsec(timeout) : 0;
	ret = pselect((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3], timeout,
		      mask ? mask->set : NULL);
	if (span && (ret >= 0 || errno != EINVAL))
		store_remaining(timeout, begin, span);
	return ret;
}

bool fz_syscall_poll(long number, const long *a, long *ret)
{
	int fd = (int)a[0];
	void *buf = (void *)a[1];

	switch (number) {
#ifdef SYS_poll
	case SYS_poll:
		*ret = poll((struct pollfd *)a[0], (nfds_t)a[1], (int)a[2]);
		return true;
#endif
	case SYS_ppoll: *ret = kernel_ppoll(a); return true;
#ifdef SYS_select
	case SYS_select: *ret = kernel_select(a); return true;
#endif
	case SYS_pselect6: *ret = kernel_pselect(a); return true;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		*ret = epoll_wait(fd, (struct epoll_event *)buf, (int)a[2], (int)a[3]);
		return true;
#endif
	case SYS_epoll_pwait:
		if (a[4] && a[5] != FZ_KERNEL_SIGSET_SIZE)
			return false;
		*ret = epoll_pwait(fd, (struct epoll_event *)buf, (int)a[2], (int)a[3],
				   (const sigset_t *)a[4]);
		return true;
	case SYS_epoll_pwait2:
		if (!fz_real.epoll_pwait2 || (a[4] && a[5] != FZ_KERNEL_SIGSET_SIZE))
			return false;
		*ret = epoll_pwait2(fd, (struct epoll_event *)buf, (int)a[2],
				    (const struct timespec *)a[3], (const sigset_t *)a[4]);
		return true;
	default:
		return false;
	}
}
