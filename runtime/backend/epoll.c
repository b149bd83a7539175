/* SPDX-License-Identifier: MIT */
#include "runtime/backend/epoll.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mman.h>
#include <poll.h>

#include "runtime/io/fdtab.h"
#include "runtime/base/features.h"
#include "runtime/base/lock.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/sys.h"
#include "runtime/sched/timer.h"

enum { TABLE_FDS = 1 << 20, STRIPES = 64 };

/* In epoll_event.data: a descriptor, or one of these. */
enum { DATA_KICK = -1, DATA_RING = -2 };

struct stripe {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
};

/* Whole pages, for fz_epoll_after_fork(). */
static _Alignas(4096) struct stripe stripes[STRIPES];
_Static_assert(sizeof(stripes) % 4096 == 0, "whole pages");

/*
 * By descriptor, the list of its watches; guarded by its stripe, read without it as
 * a hint.  Never unmapped while there is a second thread.
 */
static _Atomic(struct fz_watch *) *_Atomic heads;

/* No descriptor above it has ever had a watch. */
static _Atomic int highest;

/* epoll_pwait2 is there (Linux 5.11). */
static bool has_pwait2;

static struct fz_lock *lock_of(int fd)
{
	return &stripes[(unsigned)fd % STRIPES].lock;
}

static _Atomic(struct fz_watch *) *load_heads(void)
{
	/* acquire: pairs with make_table(). */
	return atomic_load_explicit(&heads, memory_order_acquire);
}

static struct fz_watch *head_of(int fd)
{
	/* relaxed: under the lock, or a hint. */
	return atomic_load_explicit(&load_heads()[fd], memory_order_relaxed);
}

/* Under the lock. */
static void set_head(int fd, struct fz_watch *w)
{
	atomic_store_explicit(&load_heads()[fd], w, memory_order_relaxed);
}

static bool in_table(int fd)
{
	return load_heads() && (unsigned)fd < TABLE_FDS;
}

bool fz_epoll_is_watched(int fd)
{
	return in_table(fd) && head_of(fd);
}

unsigned fz_epoll_next(unsigned first)
{
	/* relaxed: a hint. */
	const unsigned high = (unsigned)atomic_load_explicit(&highest, memory_order_relaxed);

	for (unsigned fd = first; load_heads() && fd <= high; fd++) {
		bool used;

		if (!head_of((int)fd))
			continue;
		fz_lock_acquire(lock_of((int)fd));
		used = head_of((int)fd) && !head_of((int)fd)->copied;
		fz_lock_release(lock_of((int)fd));
		if (used)
			return fd;
	}
	return UINT_MAX;
}

/* The list that the watch is in, locked, whatever happens to its number. */
static int lock_watch(const struct fz_watch *w)
{
	for (;;) {
		/* relaxed: changes under the lock, and is looked at again. */
		int fd = atomic_load_explicit(&w->fd, memory_order_relaxed);

		fz_lock_acquire(lock_of(fd));
		if (atomic_load_explicit(&w->fd, memory_order_relaxed) == fd)
			return fd;
		fz_lock_release(lock_of(fd));
	}
}

static void link_locked(int fd, struct fz_watch *w)
{
	struct fz_watch *head = head_of(fd);

	if (head) {
		w->next = head;
		w->prev = head->prev;
		w->prev->next = w;
		head->prev = w;
	} else {
		w->next = w->prev = w;
		set_head(fd, w);
	}
	w->linked = true;
	/* relaxed: a count that the monitor and the owner sample. */
	atomic_fetch_add_explicit(&w->on->watching, 1, memory_order_relaxed);
}

static void unlink_locked(int fd, struct fz_watch *w)
{
	if (w->next == w) {
		set_head(fd, NULL);
	} else {
		w->next->prev = w->prev;
		w->prev->next = w->next;
		if (head_of(fd) == w)
			set_head(fd, w->next);
	}
	w->linked = false;
	atomic_fetch_sub_explicit(&w->on->watching, 1, memory_order_relaxed);
}

static struct fz_watch *next_in(int fd, const struct fz_watch *w)
{
	return w->next == head_of(fd) ? NULL : w->next;
}

static long control(const struct fz_epoll *e, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)(int64_t)fd };

	return fz_syscall4(__NR_epoll_ctl, atomic_load_explicit(&e->fd, memory_order_relaxed),
			   operation, fd, (long)&event);
}

/*
 * One shot for the watches of fd on e that have had none, except for those who want
 * any of served: theirs is another's to pass on.
 */
static int arm_locked(struct fz_epoll *e, int fd, uint32_t served)
{
	uint32_t events = EPOLLONESHOT;
	bool wanted = false;
	long err;

	for (struct fz_watch *w = head_of(fd); w; w = next_in(fd, w)) {
		if (w->on != e || w->fired || (w->events & served))
			continue;
		events |= w->events;
		wanted = true;
	}
	if (!wanted)
		return 0;
	do {
		err = control(e, EPOLL_CTL_MOD, fd, events);
		if (err == -ENOENT)
			err = control(e, EPOLL_CTL_ADD, fd, events);
		/* Closed and opened by another thread in between. */
	} while (err == -EEXIST);
	return (int)err;
}

/* And close the copy that nobody else uses. */
static void release(const struct fz_watch *w, int fd)
{
	bool last = w->copied && !w->linked && !head_of(fd);

	fz_lock_release(lock_of(fd));
	if (last)
		fz_own_fd_drop(fd);
}

int fz_watch_start(struct fz_epoll *e, struct fz_watch *w, struct fz_ticket ticket)
{
	int fd = atomic_load_explicit(&w->fd, memory_order_relaxed), err;

	if (!in_table(fd))
		return fd < 0 ? -EBADF : -ENOSPC;
	w->on = e;
	w->ticket = ticket;
	fz_raise_to(&highest, fd);
	fz_lock_acquire(lock_of(fd));
	link_locked(fd, w);
	/*
	 * seq_cst: pairs with fz_op_closed().  Either that finds the watch, or the kernel, asked
	 * next, finds the descriptor closed.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	err = arm_locked(e, fd, 0);
	if (err)
		unlink_locked(fd, w);
	fz_lock_release(lock_of(fd));
	if (!err)
		fz_fdtab_change(fd, 0, FZ_FD_WATCHED);
	return err;
}

void fz_watch_end(struct fz_watch *w)
{
	int fd;

	if (!w->linked)
		return;
	fd = lock_watch(w);
	unlink_locked(fd, w);
	if (w->fired)
		arm_locked(w->on, fd, 0);
	release(w, fd);
}

static void dispatch(struct fz_epoll *e, int fd, uint32_t ready)
{
	const uint32_t always = EPOLLERR | EPOLLHUP;
	uint32_t taken = 0;

	if (!in_table(fd))
		return;
	fz_lock_acquire(lock_of(fd));
	for (struct fz_watch *w = head_of(fd); w; w = next_in(fd, w)) {
		if (w->on != e || w->fired || !(ready & (w->events | always)))
			continue;
		if (w->exclusive && !(ready & always) && (taken & w->events))
			continue;
		/*
		 * If something else has ended its wait, the event is the next
		 * one's.  Either way it is on its way to fz_watch_end(), and arms
		 * for the others there.
		 */
		w->fired = true;
		if (fz_wake(w->ticket, FZ_WHY_DONE) && w->exclusive)
			taken |= w->events;
	}
	/* For those who wait for something else nobody is on his way. */
	arm_locked(e, fd, ready);
	fz_lock_release(lock_of(fd));
}

void fz_epoll_remove(struct fz_epoll *e, int fd)
{
	if (fz_epoll_active(e))
		control(e, EPOLL_CTL_DEL, fd, 0);
}

static void wake_all_locked(int fd)
{
	for (struct fz_watch *w = head_of(fd); w; w = next_in(fd, w)) {
		w->fired = true;
		fz_wake(w->ticket, FZ_WHY_DONE);
	}
}

void fz_epoll_closed(int fd)
{
	fz_lock_acquire(lock_of(fd));
	wake_all_locked(fd);
	fz_lock_release(lock_of(fd));
}

void fz_epoll_closing(int fd)
{
	int copy, low, high;

	if (!fz_epoll_is_watched(fd))
		return;
	copy = fz_own_fd_keep(fd);
	if (!in_table(copy)) {
		if (copy >= 0)
			fz_own_fd_drop(copy);
		copy = fd;
	}
	low = fd % STRIPES < copy % STRIPES ? fd : copy;
	high = low == fd ? copy : fd;
	fz_lock_acquire(lock_of(low));
	if (lock_of(low) != lock_of(high))
		fz_lock_acquire(lock_of(high));
	if (copy == fd) {
		/* No number to be had: they try again, and learn that it is closed. */
		wake_all_locked(fd);
	} else if (!head_of(fd)) {
		fz_own_fd_drop(copy);
	} else {
		set_head(copy, head_of(fd));
		set_head(fd, NULL);
		for (struct fz_watch *w = head_of(copy); w; w = next_in(copy, w)) {
			atomic_store_explicit(&w->fd, copy, memory_order_relaxed);
			w->copied = true;
			/* It would outlive the number, with the copy. */
			control(w->on, EPOLL_CTL_DEL, fd, 0);
		}
		for (struct fz_watch *w = head_of(copy); w; w = next_in(copy, w))
			arm_locked(w->on, copy, 0);
	}
	if (lock_of(low) != lock_of(high))
		fz_lock_release(lock_of(high));
	fz_lock_release(lock_of(low));
}

/* ---- the instance ------------------------------------------------------- */

void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	int fd = atomic_load_explicit(&e->fd, memory_order_relaxed), timeout = -1;
	struct __kernel_timespec ts = { 0, 0 };
	fz_nsec now = deadline == 0 || deadline == FZ_FOREVER ? 0 : fz_now();
	long n;

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
		/* until the baseline is 5.11: epoll_wait counts milliseconds. */
		struct pollfd p = { .fd = fd, .events = POLLIN };

		fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&ts, 0, 0);
	}
	n = fz_syscall6(__NR_epoll_pwait, fd, (long)ret_arrivals->events, FZ_ARRIVALS,
			timeout, 0, 0);
	/* -EINTR and the like: the caller looks at everything anyway. */
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
			dispatch(e, fd, event->events);
		} else if (owned && fd == DATA_KICK) {
			*ret_kicked = true;
			/*
			 * Level-triggered: it stays for who is not the owner any more, and
			 * would otherwise sleep here until something else arrives.
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

static int make_table(void)
{
	_Atomic(struct fz_watch *) *none = NULL;
	long mem;

	if (load_heads())
		return 0;
	mem = fz_sys_mmap(TABLE_FDS * sizeof(struct fz_watch *), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (fz_sys_failed(mem))
		return (int)mem;
	/* release: pairs with load_heads().  Two at once, when the ring was lost? */
	if (!atomic_compare_exchange_strong_explicit(&heads, &none, (void *)mem,
						     memory_order_release,
						     memory_order_relaxed))
		fz_syscall2(__NR_munmap, mem, TABLE_FDS * sizeof(struct fz_watch *));
	return 0;
}

int fz_epoll_init(struct fz_epoll *e, const char **ret_why)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)DATA_KICK };
	struct __kernel_timespec none = { 0, 0 };
	long fd, event_fd, err;

	*ret_why = "no memory";
	err = make_table();
	if (err)
		return (int)err;
	*ret_why = "epoll_create1";
	fd = fz_syscall1(__NR_epoll_create1, EPOLL_CLOEXEC);
	if (fd < 0)
		return (int)fd;
	*ret_why = "eventfd";
	event_fd = fz_syscall2(__NR_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
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

void fz_epoll_after_fork(void)
{
	fz_sys_forget_pages(stripes, sizeof(stripes));
	if (load_heads())
		fz_syscall2(__NR_munmap, (long)load_heads(), TABLE_FDS * sizeof(struct fz_watch *));
	atomic_store_explicit(&heads, NULL, memory_order_relaxed);
}

int fz_epoll_vacate_fd(struct fz_epoll *e, int fd)
{
	bool is_event = atomic_load_explicit(&e->event_fd, memory_order_relaxed) == fd;
	int copy;

	if (!fz_epoll_active(e) ||
	    (!is_event && atomic_load_explicit(&e->fd, memory_order_relaxed) != fd))
		return 0;
	/* The registration of the eventfd stays: the open file lives on in the copy. */
	copy = fz_own_fd_elsewhere(fd);
	if (copy < 0)
		return copy;
	atomic_store_explicit(is_event ? &e->event_fd : &e->fd, copy, memory_order_relaxed);
	return 0;
}
