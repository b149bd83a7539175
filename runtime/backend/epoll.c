/* SPDX-License-Identifier: MIT */
#include "runtime/backend/epoll.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

#include "runtime/backend/own_fd.h"
#include "runtime/backend/watch.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"

/* epoll_event.data holds a watched descriptor, or one of these values. */
enum { DATA_KICK = -1, DATA_RING = -2, DATA_BLIND = -3 };

/* Calls that this kernel does not have (epoll_pwait2, Linux 5.11) or that a filter forbids. */
enum { NO_PWAIT2 = 1, NO_PWAIT = 2, NO_WAIT = 4 };
static _Atomic uint32_t lacking;

/* relaxed: a thread that has not seen a bit finds out by itself. */
static bool may(uint32_t call)
{
	return !(atomic_load_explicit(&lacking, memory_order_relaxed) & call);
}

static void lack(uint32_t call)
{
	atomic_fetch_or_explicit(&lacking, call, memory_order_relaxed);
}

bool fz_epoll_can_wait(void)
{
	return may(NO_PWAIT2) || may(NO_PWAIT) || may(NO_WAIT);
}

/* epoll_pwait2; returns -ENOSYS if it cannot be called. */
static long wait_finely(int fd, struct epoll_event *events, int most,
			const struct __kernel_timespec *limit)
{
	long n = -ENOSYS;

	if (may(NO_PWAIT2))
		n = fz_syscall6(__NR_epoll_pwait2, fd, (long)events, most, (long)limit, 0, 0);
	if (n != -ENOSYS &&
	    !fz_sys_is_denied(n, __NR_epoll_pwait2, (long)events, most, (long)limit, 0, 0))
		return n;
	lack(NO_PWAIT2);
	return -ENOSYS;
}

/* timeout in milliseconds, -1 for none.  By whichever of the kernel's calls is not forbidden. */
static long wait_coarsely(int fd, struct epoll_event *events, int most, int timeout)
{
	const struct __kernel_timespec ts = fz_timespec((fz_nsec)timeout * FZ_MSEC);
	long n;

	if (may(NO_PWAIT)) {
		n = fz_syscall6(__NR_epoll_pwait, fd, (long)events, most, timeout, 0, 0);
		if (!fz_sys_is_denied(n, __NR_epoll_pwait, (long)events, most, timeout, 0, 0))
			return n;
		lack(NO_PWAIT);
	}
#ifdef __NR_epoll_wait
	if (may(NO_WAIT)) {
		n = fz_syscall4(__NR_epoll_wait, fd, (long)events, most, timeout);
		if (!fz_sys_is_denied(n, __NR_epoll_wait, (long)events, most, timeout, 0, 0))
			return n;
	}
#endif
	lack(NO_WAIT);
	return wait_finely(fd, events, most, timeout < 0 ? NULL : &ts);
}

/*
 * Filters forbid all calls that wait: look for work now and then.  The fibers that wait for
 * descriptors go on in calls of their own.
 */
static long wait_blindly(struct epoll_event *events, fz_nsec left)
{
	const struct __kernel_timespec ts = fz_timespec(left < FZ_MSEC ? left : FZ_MSEC);
	const uint32_t word = 0;

	if (left)
		fz_sys_futex_wait(&word, 0, &ts);
	events->data.u64 = (uint64_t)DATA_BLIND;
	return 1;
}

static long wait_for(int fd, struct epoll_event *events, fz_nsec deadline)
{
	struct __kernel_timespec ts;
	int timeout = deadline == FZ_FOREVER ? -1 : 0;
	fz_nsec now = timeout || !deadline ? 0 : fz_now();
	fz_nsec left = timeout ? FZ_FOREVER : deadline > now ? deadline - now : 0;
	long n = -ENOSYS;

	if (left && !timeout) {
		ts = fz_timespec(left);
		n = wait_finely(fd, events, FZ_ARRIVALS, &ts);
		if (n != -ENOSYS)
			return n;
		/*
		 * until the baseline is 5.11: epoll_wait counts milliseconds, so ppoll sleeps, in
		 * nanoseconds.
		 */
		struct pollfd p = { .fd = fd, .events = POLLIN };

		n = fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&ts, 0, 0);
		if (n < 0 && n != -EINTR)
			timeout = left / FZ_MSEC < INT_MAX ? (int)(left / FZ_MSEC) + 1 : INT_MAX;
	}
	if (fz_epoll_can_wait())
		n = wait_coarsely(fd, events, FZ_ARRIVALS, timeout);
	return fz_epoll_can_wait() ? n : wait_blindly(events, left);
}

void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	long n = 0;

	if (!FZ_FAULT(wait_eintr))
		n = wait_for(atomic_load_explicit(&e->fd, memory_order_relaxed),
			     ret_arrivals->events, deadline);
	/* After -EINTR and other errors the caller checks for work anyway. */
	ret_arrivals->count = n > 0 ? (int)n : 0;
}

void fz_epoll_deliver(struct fz_epoll *e, struct fz_arrivals *arrivals, bool owned,
		      bool *ret_kicked)
{
	uint64_t kicks;

	for (int i = 0; i < arrivals->count; i++) {
		const struct epoll_event *event = &arrivals->events[i];
		int fd = (int)(int64_t)event->data.u64;

		if (fd >= 0) {
			fz_watch_dispatch(e, fd, event->events);
		} else if (fd == DATA_BLIND) {
			fz_watch_wake_all();
		} else if (owned && fd == DATA_KICK) {
			*ret_kicked = true;
			/*
			 * The eventfd is level-triggered: left unread, it also ends the wait of a
			 * carrier that has lost the processor, which would otherwise sleep here
			 * until something else arrives.
			 */
			if (atomic_load_explicit(&e->losers, memory_order_seq_cst) > 0)
				continue;
			fz_syscall3(__NR_read,
				    atomic_load_explicit(&e->event_fd, memory_order_relaxed),
				    (long)&kicks, sizeof(kicks));
		}
	}
	arrivals->count = 0;
}

bool fz_epoll_has_arrivals(const struct fz_epoll *e)
{
	struct pollfd p = {
		.fd = atomic_load_explicit(&e->fd, memory_order_relaxed), .events = POLLIN,
	};
	struct __kernel_timespec none = { 0, 0 };

	/* Yes, if a filter forbids to ask. */
	return fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&none, 0, 0) != 0;
}

void fz_epoll_kick(struct fz_epoll *e)
{
	const uint64_t one = 1;

	fz_syscall3(__NR_write, atomic_load_explicit(&e->event_fd, memory_order_relaxed),
		    (long)&one, sizeof(one));
}

int fz_epoll_init(struct fz_epoll *e, const char **ret_why)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)DATA_KICK };
	struct __kernel_timespec none = { 0, 0 };
	long fd, event_fd, err;

	*ret_why = "no memory";
	err = fz_watch_init_table();
	if (err)
		return (int)err;
	*ret_why = "epoll_create1";
	fd = FZ_FAULT(epoll_create) ? -EMFILE : fz_syscall1(__NR_epoll_create1, EPOLL_CLOEXEC);
	if (fd < 0)
		return (int)fd;
	*ret_why = "eventfd";
	event_fd = FZ_FAULT(eventfd) ? -EMFILE :
		fz_syscall2(__NR_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
	err = event_fd;
	if (event_fd < 0)
		goto out_close;
	event_fd = fz_own_fd_raise((int)event_fd);
	fd = fz_own_fd_raise((int)fd);
	*ret_why = "epoll_ctl";
	err = fz_syscall4(__NR_epoll_ctl, fd, EPOLL_CTL_ADD, event_fd, (long)&event);
	if (err)
		goto out_close_event;
	if (!fz_feature_allowed(FZ_FEATURE_EPOLL_PWAIT2))
		lack(NO_PWAIT2);
	wait_finely((int)fd, &event, 1, &none);
	*ret_why = "epoll_wait";
	err = wait_coarsely((int)fd, &event, 1, 0);
	if (err < 0 && err != -EINTR)
		goto out_close_event;
	atomic_store_explicit(&e->event_fd, (int)event_fd, memory_order_relaxed);
	atomic_store_explicit(&e->fd, (int)fd, memory_order_relaxed);
	return 0;
out_close_event:
	fz_syscall1(__NR_close, event_fd);
out_close:
	fz_syscall1(__NR_close, fd);
	return (int)err;
}

void fz_epoll_add_ring(struct fz_epoll *e, int ring_fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)DATA_RING };

	fz_syscall4(__NR_epoll_ctl, atomic_load_explicit(&e->fd, memory_order_relaxed),
		    EPOLL_CTL_ADD, ring_fd, (long)&event);
}

void fz_epoll_fini(struct fz_epoll *e)
{
	if (!fz_epoll_active(e))
		return;
	fz_syscall1(__NR_close, atomic_load_explicit(&e->event_fd, memory_order_relaxed));
	fz_syscall1(__NR_close, atomic_load_explicit(&e->fd, memory_order_relaxed));
	atomic_store_explicit(&e->fd, -1, memory_order_relaxed);
}

void fz_epoll_remove(struct fz_epoll *e, int fd)
{
	if (fz_epoll_active(e))
		fz_epoll_control(e, EPOLL_CTL_DEL, fd, 0);
}

int fz_epoll_vacate_fd(struct fz_epoll *e, int fd)
{
	bool is_event = atomic_load_explicit(&e->event_fd, memory_order_relaxed) == fd;
	int copy;

	if (!fz_epoll_active(e) ||
	    (!is_event && atomic_load_explicit(&e->fd, memory_order_relaxed) != fd))
		return 0;
	/* The eventfd stays registered: its open file lives on in the copy. */
	copy = fz_own_fd_elsewhere(fd);
	if (copy < 0)
		return copy;
	atomic_store_explicit(is_event ? &e->event_fd : &e->fd, copy, memory_order_relaxed);
	return 0;
}
