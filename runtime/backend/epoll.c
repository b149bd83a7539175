/* SPDX-License-Identifier: MIT */
#include "runtime/backend/epoll.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>

#include "runtime/backend/own_fd.h"
#include "runtime/backend/watch.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"

/* epoll_event.data holds a watched descriptor, or one of these values. */
enum { DATA_KICK = -1, DATA_RING = -2, DATA_LOST = -3 };

/*
 * How to ask an instance.  The first that works is in use; a filter (seccomp) may forbid it later.
 * BY_NONE: fibers cannot wait for descriptors any more, so their calls are announced.
 */
enum { BY_PWAIT2, BY_PWAIT, BY_WAIT, BY_NONE };

/* relaxed: a thread with an old value gets an error from the filter, and looks again. */
static _Atomic int way;

/* timeout NULL: for ever.  Where the kernel counts milliseconds, they are rounded up. */
static long ask(int by, int fd, struct epoll_event *events, int most,
		const struct __kernel_timespec *timeout)
{
	const fz_nsec ns = timeout ? (fz_nsec)timeout->tv_sec * FZ_SEC +
					     (fz_nsec)timeout->tv_nsec + FZ_MSEC - 1 : 0;
	const fz_nsec longest = INT32_MAX * FZ_MSEC;
	const long ms = timeout ? (long)((ns < longest ? ns : longest) / FZ_MSEC) : -1;

	switch (by) {
	case BY_PWAIT2:
		return fz_feature_allowed(FZ_FEATURE_EPOLL_PWAIT2) ?
			fz_syscall6(__NR_epoll_pwait2, fd, (long)events, most, (long)timeout, 0,
				    0) : -ENOSYS;
	case BY_PWAIT:
		return fz_syscall6(__NR_epoll_pwait, fd, (long)events, most, ms, 0, 0);
#ifdef __NR_epoll_wait
	case BY_WAIT:
		return fz_syscall4(__NR_epoll_wait, fd, (long)events, most, ms);
#endif
	default:
		return -ENOSYS;
	}
}

/* Does this call reach the kernel?  The kernel answers these two calls differently; a filter answers both alike. */
static bool is_usable(int by, int fd)
{
	struct epoll_event event;

	return ask(by, -1, &event, 1, NULL) == -EBADF && ask(by, fd, &event, 0, NULL) == -EINVAL;
}

static void find_way(const struct fz_epoll *e)
{
	int by = atomic_load_explicit(&way, memory_order_relaxed), fd;

	while (by < BY_NONE) {
		fd = atomic_load_explicit(&e->fd, memory_order_relaxed);
		if (is_usable(by, fd))
			break;
		/* Test once more if the instance has moved meanwhile, because the program wanted its number. */
		by += fd == atomic_load_explicit(&e->fd, memory_order_relaxed);
	}
	atomic_store_explicit(&way, by, memory_order_relaxed);
}

bool fz_epoll_is_lost(void)
{
	return FZ_UNLIKELY(atomic_load_explicit(&way, memory_order_relaxed) == BY_NONE);
}

/*
 * fz_epoll_wait() for an instance that can no longer be asked.  If there are watches, have all of them
 * try again.  Otherwise sleep until a kick, or a completion on the lost ring.
 */
static void wait_for_kick(const struct fz_epoll *e, const struct __kernel_timespec *timeout,
			  struct fz_arrivals *ret_arrivals)
{
	struct pollfd p[2] = {
		{ .fd = atomic_load_explicit(&e->event_fd, memory_order_relaxed), .events = POLLIN },
		{ .fd = atomic_load_explicit(&e->ring_fd, memory_order_relaxed), .events = POLLIN },
	};
	const struct __kernel_timespec a_moment = fz_timespec(FZ_MSEC);
	const uint32_t word = 0;
	long n;

	/* relaxed: a fiber that begins to wait now is refused (fz_watch_start()). */
	if (atomic_load_explicit(&e->watching, memory_order_relaxed)) {
		ret_arrivals->events[0].data.u64 = (uint64_t)DATA_LOST;
		ret_arrivals->count = 1;
		return;
	}
	n = fz_syscall5(__NR_ppoll, (long)p, 2, (long)timeout, 0, 0);
	/* A filter forbids ppoll, too: the caller looks for work each millisecond. */
	if (n < 0 && n != -EINTR && (!timeout || timeout->tv_sec || timeout->tv_nsec))
		fz_sys_futex_wait(&word, 0, &a_moment);
	ret_arrivals->events[0].events = EPOLLIN;
	ret_arrivals->events[0].data.u64 = (uint64_t)DATA_KICK;
	ret_arrivals->count = n != 0;
}

void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	const int fd = atomic_load_explicit(&e->fd, memory_order_relaxed);
	const int by = atomic_load_explicit(&way, memory_order_relaxed);
	const fz_nsec now = deadline == 0 || deadline == FZ_FOREVER ? 0 : fz_now();
	struct __kernel_timespec none = { 0, 0 }, ts = fz_timespec(deadline > now ? deadline - now : 0);
	const struct __kernel_timespec *timeout = deadline == FZ_FOREVER ? NULL : &ts;
	long n;

	ret_arrivals->count = 0;
	if (FZ_FAULT(wait_eintr))
		return;
	if (FZ_UNLIKELY(by == BY_NONE)) {
		wait_for_kick(e, timeout, ret_arrivals);
		return;
	}
	if (by != BY_PWAIT2 && timeout && deadline > now) {
		/*
		 * until the baseline is 5.11: epoll_wait counts milliseconds, so ppoll sleeps, in
		 * nanoseconds.
		 */
		struct pollfd p = { .fd = fd, .events = POLLIN };

		n = fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&ts, 0, 0);
		if (n >= 0 || n == -EINTR)
			timeout = &none;
	}
	n = ask(by, fd, ret_arrivals->events, FZ_ARRIVALS, timeout);
	/* After -EINTR and other errors the caller checks for work anyway. */
	if (n < 0)
		find_way(e);
	ret_arrivals->count = n > 0 ? (int)n : 0;
}

/*
 * Read or write the eventfd's count.  A filter may forbid some of the calls that read or write, but kicks
 * must still arrive: try three calls, one after the other.  The last one needs an offset; -1 is the
 * current position, the only one that an eventfd has.  Returns false if all three are forbidden.
 */
static bool transfer(const struct fz_epoll *e, bool writes, uint64_t count)
{
	const int fd = atomic_load_explicit(&e->event_fd, memory_order_relaxed);
	const struct iovec v = { &count, sizeof(count) };

	if (!FZ_FAULT(deny_kick) && fz_syscall3(writes ? __NR_write : __NR_read, fd, (long)&count,
						sizeof(count)) >= 0)
		return true;
	if (!FZ_FAULT(deny_kick_by_vector) &&
	    fz_syscall3(writes ? __NR_writev : __NR_readv, fd, (long)&v, 1) >= 0)
		return true;
	return !FZ_FAULT(deny_kick_by_offset) &&
	       fz_syscall6(writes ? __NR_pwritev2 : __NR_preadv2, fd, (long)&v, 1, -1, -1, 0) >= 0;
}

/*
 * on: have the instance report the eventfd for being writable, which it always is.  That replaces a kick if a filter
 * forbids all calls that write.  Not on: undo that.
 */
static void report_always(const struct fz_epoll *e, bool on)
{
	const int fd = atomic_load_explicit(&e->fd, memory_order_relaxed);
	const int event_fd = atomic_load_explicit(&e->event_fd, memory_order_relaxed);
	struct epoll_event event = { .events = EPOLLIN | (on ? (uint32_t)EPOLLOUT : 0),
				     .data.u64 = (uint64_t)DATA_KICK };

	/* ENOENT: the eventfd has a new number (fz_epoll_vacate_fd()), under which it is not registered. */
	if (fz_syscall4(__NR_epoll_ctl, fd, EPOLL_CTL_MOD, event_fd, (long)&event) == -ENOENT)
		fz_syscall4(__NR_epoll_ctl, fd, EPOLL_CTL_ADD, event_fd, (long)&event);
}

void fz_epoll_deliver(struct fz_epoll *e, struct fz_arrivals *arrivals, bool owned,
		      bool *ret_kicked)
{
	for (int i = 0; i < arrivals->count; i++) {
		const struct epoll_event *event = &arrivals->events[i];
		int fd = (int)(int64_t)event->data.u64;

		if (fd >= 0) {
			fz_watch_dispatch(e, fd, event->events);
		} else if (fd == DATA_LOST) {
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
			if (FZ_UNLIKELY(event->events & EPOLLOUT))
				report_always(e, false);
			if (event->events & EPOLLIN)
				transfer(e, false, 0);
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

bool fz_epoll_kick(struct fz_epoll *e)
{
	if (FZ_LIKELY(transfer(e, true, 1)))
		return true;
	report_always(e, true);
	return false;
}

int fz_epoll_init(struct fz_epoll *e, const char **ret_why)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)DATA_KICK };
	long fd, event_fd, err;

	atomic_store_explicit(&e->fd, -1, memory_order_relaxed);
	atomic_store_explicit(&e->event_fd, -1, memory_order_relaxed);
	atomic_store_explicit(&e->ring_fd, -1, memory_order_relaxed);
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
	*ret_why = "epoll_wait";
	err = -EPERM;
	atomic_store_explicit(&e->fd, (int)fd, memory_order_relaxed);
	find_way(e);
	if (fz_epoll_is_lost())
		goto out_none;
	atomic_store_explicit(&e->event_fd, (int)event_fd, memory_order_relaxed);
	return 0;
out_none:
	atomic_store_explicit(&e->fd, -1, memory_order_relaxed);
out_close_event:
	fz_syscall1(__NR_close, event_fd);
out_close:
	fz_syscall1(__NR_close, fd);
	return (int)err;
}

void fz_epoll_add_ring(struct fz_epoll *e, int ring_fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)DATA_RING };

	atomic_store_explicit(&e->ring_fd, ring_fd, memory_order_relaxed);
	fz_syscall4(__NR_epoll_ctl, atomic_load_explicit(&e->fd, memory_order_relaxed),
		    EPOLL_CTL_ADD, ring_fd, (long)&event);
}

void fz_epoll_fini(struct fz_epoll *e)
{
	if (atomic_load_explicit(&e->fd, memory_order_relaxed) < 0)
		return;
	fz_own_fd_close(atomic_load_explicit(&e->event_fd, memory_order_relaxed));
	fz_own_fd_close(atomic_load_explicit(&e->fd, memory_order_relaxed));
	atomic_store_explicit(&e->fd, -1, memory_order_relaxed);
	atomic_store_explicit(&e->active, false, memory_order_relaxed);
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

	if (!is_event && atomic_load_explicit(&e->fd, memory_order_relaxed) != fd)
		return 0;
	/* The eventfd stays registered: its open file lives on in the copy. */
	copy = fz_own_fd_elsewhere(fd);
	if (copy < 0)
		return copy;
	atomic_store_explicit(is_event ? &e->event_fd : &e->fd, copy, memory_order_relaxed);
	return 0;
}
