/* SPDX-License-Identifier: MIT */
#include "runtime/backend/epoll.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <poll.h>

#include "runtime/backend/own_fd.h"
#include "runtime/backend/watch.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"

/* epoll_event.data holds a watched descriptor, or one of these values. */
enum { DATA_KICK = -1, DATA_RING = -2 };

/* Does the kernel have epoll_pwait2 (Linux 5.11)?  Written by fz_epoll_init(). */
static bool has_pwait2;

void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	int fd = atomic_load_explicit(&e->fd, memory_order_relaxed), timeout = -1;
	struct __kernel_timespec ts = { 0, 0 };
	fz_nsec now = deadline == 0 || deadline == FZ_FOREVER ? 0 : fz_now();
	long n;

	ret_arrivals->count = 0;
	if (FZ_FAULT(wait_eintr))
		return;
	if (deadline != FZ_FOREVER) {
		ts = fz_timespec(deadline > now ? deadline - now : 0);
		timeout = 0;
	}
	if (deadline > now && deadline != FZ_FOREVER) {
		if (has_pwait2) {
			n = fz_syscall6(__NR_epoll_pwait2, fd, (long)ret_arrivals->events,
					FZ_ARRIVALS, (long)&ts, 0, 0);
			ret_arrivals->count = n > 0 ? (int)n : 0;
			return;
		}
		/*
		 * until the baseline is 5.11: epoll_wait counts milliseconds, so ppoll sleeps, in
		 * nanoseconds.
		 */
		struct pollfd p = { .fd = fd, .events = POLLIN };

		fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&ts, 0, 0);
	}
	n = fz_syscall6(__NR_epoll_pwait, fd, (long)ret_arrivals->events, FZ_ARRIVALS,
			timeout, 0, 0);
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

	return fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&none, 0, 0) > 0;
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
	has_pwait2 = fz_feature_allowed(FZ_FEATURE_EPOLL_PWAIT2) &&
		     fz_syscall6(__NR_epoll_pwait2, fd, (long)&event, 1, (long)&none, 0,
				 0) >= 0;
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
