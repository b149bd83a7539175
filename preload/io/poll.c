/* SPDX-License-Identifier: MIT */
/*
 * preload/io/poll.c - poll, select, epoll_wait.
 *
 * No call of this file is restarted after a handler, SA_RESTART or not (signal(7)).
 * The masks of ppoll, pselect and epoll_pwait hold for the time of the call.
 */
#include "preload/gate.h"
#include "preload/real_call.h"
#include "preload/time.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/io/pin.h"
#include "runtime/io/wait.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

#include <limits.h>
#include <sys/syscall.h>

/* The system call that libc's poll() makes. */
#ifdef SYS_poll
enum { POLL = SYS_poll };
#else
enum { POLL = SYS_ppoll };
#endif

static fz_nsec deadline_of_ms(int timeout)
{
	if (timeout < 0)
		return FZ_FOREVER;
	return timeout == 0 ? 0 : fz_now() + (fz_nsec)timeout * FZ_MSEC;
}

/*
 * Turn a timeout into a deadline: 0 means do not wait, FZ_FOREVER means without a timeout.
 * Returns false if the timeout is invalid.
 */
static bool deadline_of(const struct timespec *timeout, fz_nsec *ret_deadline)
{
	fz_nsec span;

	*ret_deadline = FZ_FOREVER;
	if (!timeout)
		return true;
	if (!fz_timespec_valid(timeout) || timeout->tv_sec < 0)
		return false;
	span = fz_timespec_nsec(timeout);
	*ret_deadline = span ? fz_deadline_after(span) : 0;
	return true;
}

/* The first word of a mask is the kernel's mask. */
static const uint64_t *word_of(const sigset_t *mask)
{
	return (const uint64_t *)(const void *)mask;
}

FZ_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_poll);

	if (!self)
		return fz_real.poll(fds, n, timeout);
	return (int)fz_leave(fz_io_poll(self, POLL, fds, n, deadline_of_ms(timeout), NULL));
}
FZ_EXPORT_ALIAS(__poll, poll);

FZ_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t fdslen)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___poll_chk);

	if (!self || fdslen / sizeof(*fds) < n)
		return FZ_RETURNS_HERE(fz_real.__poll_chk(fds, n, timeout, fdslen));
	return (int)fz_leave(fz_io_poll(self, POLL, fds, n, deadline_of_ms(timeout), NULL));
}

static int ppoll_common(struct fz_fiber *self, struct pollfd *fds, nfds_t n,
			const struct timespec *timeout, const sigset_t *mask)
{
	fz_nsec deadline;

	if (!deadline_of(timeout, &deadline))
		return (int)fz_leave(-EINVAL);
	if (mask && !fz_sys_readable(mask))
		return (int)fz_leave(-EFAULT);
	return (int)fz_leave(fz_io_poll(self, SYS_ppoll, fds, n, deadline, word_of(mask)));
}

FZ_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		    const sigset_t *mask)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_ppoll);

	if (!self)
		return fz_real.ppoll(fds, n, timeout, mask);
	return ppoll_common(self, fds, n, timeout, mask);
}

FZ_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			  const sigset_t *mask, size_t fdslen)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___ppoll_chk);

	if (!self || fdslen / sizeof(*fds) < n)
		return FZ_RETURNS_HERE(fz_real.__ppoll_chk(fds, n, timeout, mask, fdslen));
	return ppoll_common(self, fds, n, timeout, mask);
}

/* Linux's select stores the remaining time, also after an error. */
FZ_EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_select);
	void *const sets[3] = { r, w, e };
	fz_nsec deadline = FZ_FOREVER;
	int ret;

	n = fz_io_select_end(n);
	if (!self)
		return fz_real.select(n, r, w, e, timeout);
	if (timeout) {
		struct timespec span = { .tv_sec = timeout->tv_sec };
		fz_nsec ns;

		if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
			return (int)fz_leave(-EINVAL);
		ns = fz_timespec_nsec(&span);
		if (ns != FZ_FOREVER)
			ns += (fz_nsec)timeout->tv_usec * FZ_USEC;
		deadline = ns ? fz_deadline_after(ns) : 0;
	}
	ret = fz_io_select(self, n, sets, deadline, NULL);
	if (timeout && deadline != FZ_FOREVER) {
		fz_nsec now = deadline ? fz_now() : 0;
		fz_nsec left = deadline > now && ret != 0 ? deadline - now : 0;

		timeout->tv_sec = (time_t)(left / FZ_SEC);
		timeout->tv_usec = (suseconds_t)(left % FZ_SEC / FZ_USEC);
	}
	return (int)fz_leave(ret);
}
FZ_EXPORT_ALIAS(__select, select);

FZ_EXPORT int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *timeout,
		      const sigset_t *mask)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pselect);
	void *const sets[3] = { r, w, e };
	fz_nsec deadline;

	n = fz_io_select_end(n);
	if (!self)
		return fz_real.pselect(n, r, w, e, timeout, mask);
	if (!deadline_of(timeout, &deadline))
		return (int)fz_leave(-EINVAL);
	if (mask && !fz_sys_readable(mask))
		return (int)fz_leave(-EFAULT);
	return (int)fz_leave(fz_io_select(self, n, sets, deadline, word_of(mask)));
}

/* Which function the program has called: epoll_wait, epoll_pwait or epoll_pwait2. */
enum epoll_call { WAIT, PWAIT, PWAIT2 };

/* Make the program's call, without a mask; it waits up to the deadline. deadline 0: it does not wait. */
static int epoll_really(enum epoll_call call, int fd, struct epoll_event *events, int max,
			fz_nsec deadline)
{
	struct timespec span;
	int timeout = deadline ? -1 : 0;
	fz_nsec left;

	if (call == PWAIT2)
		return fz_real.epoll_pwait2(fd, events, max, fz_timeout_left(deadline, &span),
					    NULL);
	if (deadline && deadline != FZ_FOREVER) {
		span = fz_timespec_left(deadline);
		left = fz_timespec_nsec(&span);
		timeout = left / FZ_MSEC >= INT_MAX ? INT_MAX :
						      (int)(left / FZ_MSEC) + (left % FZ_MSEC != 0);
	}
	return call == WAIT ? fz_real.epoll_wait(fd, events, max, timeout) :
			      fz_real.epoll_pwait(fd, events, max, timeout, NULL);
}

/* Wait in the program's own call, announced: for a fiber that is alone, or if a filter forbids requests. */
static int epoll_announced(struct fz_fiber *self, enum epoll_call call, int fd,
			   struct epoll_event *events, int max, fz_nsec deadline)
{
	struct fz_blocked blocked = fz_block(self, 0);
	int ret;

	do
		ret = epoll_really(call, fd, events, max, deadline);
	while (fz_block_again(&blocked, ret));
	fz_block_end(&blocked, ret);
	return ret;
}

/*
 * Wait for readiness of the epoll descriptor, then make the real call with timeout 0. The real
 * call must not wait: the kernel would fail it with EINTR when a request of this kernel thread
 * completes.
 */
static int epoll_common(struct fz_fiber *self, enum epoll_call call, struct fz_pin *pin,
			struct epoll_event *events, int max, fz_nsec deadline)
{
	int ret;

	if (deadline == 0)
		fz_io_yield_sometimes(self, false);
	fz_signal_mark(self);
	if (deadline != 0 && fz_is_alone(self)) {
		fz_io_yield_sometimes(self, false);
		ret = epoll_announced(self, call, fz_pin_fd(pin), events, max, deadline);
		if (ret > 0)
			fz_io_expect_data(self, ret);
		return ret;
	}
	for (;;) {
		ret = epoll_really(call, fz_pin_fd(pin), events, max, 0);

		if (ret > 0)
			fz_io_expect_data(self, ret);
		if (ret != 0 || deadline == 0)
			return ret;
		ret = fz_io_wait_ready(self, pin, POLLIN, deadline, false);
		if (ret == FZ_OP_FORBIDDEN)
			return epoll_announced(self, call, fz_pin_fd(pin), events, max, deadline);
		if (ret <= 0)
			return (int)fz_leave(ret);
	}
}

FZ_EXPORT int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_epoll_wait);
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);

	if (!self)
		return fz_real.epoll_wait(fd, events, max, timeout);
	return epoll_common(self, WAIT, &pin, events, max, deadline_of_ms(timeout));
}

static int epoll_masked(struct fz_fiber *self, enum epoll_call call, int fd,
			struct epoll_event *events, int max, fz_nsec deadline,
			const sigset_t *mask)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_mask_swap old;
	int ret;

	if (!mask)
		return epoll_common(self, call, &pin, events, max, deadline);
	if (!fz_sys_readable(mask))
		return (int)fz_leave(-EFAULT);
	for (;;) {
		/*
		 * Ask first, without the mask: the mask lets signals in only while the call waits,
		 * as in the kernel. Once events are taken, no handler may make the call fail with
		 * EINTR, because the events may not be reported again.
		 */
		ret = epoll_common(self, call, &pin, events, max, 0);
		if (ret != 0 || deadline == 0)
			return ret;
		ret = fz_signal_swap_mask(self, *word_of(mask), &old) ?
			      -EINTR : fz_io_wait_ready(self, &pin, POLLIN, deadline, false);
		if (ret == FZ_OP_FORBIDDEN) {
			ret = epoll_announced(self, call, fz_pin_fd(&pin), events, max, deadline);
			fz_signal_unswap_mask(self, &old);
			return ret;
		}
		fz_signal_unswap_mask(self, &old);
		if (ret >= 0 && self->sig.handlers_run)
			ret = -EINTR;
		if (ret <= 0)
			return (int)fz_leave(ret);
	}
}

FZ_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout,
			  const sigset_t *mask)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_epoll_pwait);

	if (!self)
		return fz_real.epoll_pwait(fd, events, max, timeout, mask);
	return epoll_masked(self, PWAIT, fd, events, max, deadline_of_ms(timeout), mask);
}

FZ_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int max,
			   const struct timespec *timeout, const sigset_t *mask)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_epoll_pwait2);
	fz_nsec deadline;

	/* Even if libc lacks this function, a program can find it here by dlsym(). */
	if (!fz_real.epoll_pwait2)
		return (int)fz_leave(-ENOSYS);
	if (!self)
		return fz_real.epoll_pwait2(fd, events, max, timeout, mask);
	if (timeout && (!fz_sys_readable(&timeout->tv_sec) || !fz_sys_readable(&timeout->tv_nsec)))
		return (int)fz_leave(-EFAULT);
	if (!deadline_of(timeout, &deadline))
		return (int)fz_leave(-EINVAL);
	return epoll_masked(self, PWAIT2, fd, events, max, deadline, mask);
}
