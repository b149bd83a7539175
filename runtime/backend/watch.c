/* SPDX-License-Identifier: MIT */
#include "runtime/backend/watch.h"

#include <asm/errno.h>
#include <limits.h>
#include <linux/mman.h>

#include "runtime/backend/hooks.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/sys.h"

enum { TABLE_FDS = 1 << 20, STRIPES = 64 };

struct stripe {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
};

/* Whole pages, for fz_watch_after_fork(). */
static _Alignas(4096) struct stripe stripes[STRIPES] = {
	[0 ... STRIPES - 1].lock = FZ_LOCK(FZ_RANK_BUCKET)
};
_Static_assert(sizeof(stripes) % 4096 == 0, "whole pages");

/*
 * The list of watches of each descriptor.  An entry is guarded by its stripe's lock; read without
 * the lock, it is a hint.  The table is never unmapped while there is a second thread.
 */
static _Atomic(struct fz_watch *) *_Atomic heads;

/* The highest descriptor that has ever had a watch. */
static _Atomic int highest;

static struct fz_lock *lock_of(int fd)
{
	return &stripes[(unsigned)fd % STRIPES].lock;
}

static _Atomic(struct fz_watch *) *load_heads(void)
{
	/* acquire: pairs with fz_watch_init_table(). */
	return atomic_load_explicit(&heads, memory_order_acquire);
}

static struct fz_watch *head_of(int fd)
{
	/* relaxed: the caller holds the lock, or takes it as a hint. */
	return atomic_load_explicit(&load_heads()[fd], memory_order_relaxed);
}

/* The caller holds the lock of fd's stripe, as in all functions named _locked. */
static void set_head(int fd, struct fz_watch *w)
{
	atomic_store_explicit(&load_heads()[fd], w, memory_order_relaxed);
}

static bool in_table(int fd)
{
	return load_heads() && (unsigned)fd < TABLE_FDS;
}

bool fz_watch_any(int fd)
{
	return in_table(fd) && head_of(fd);
}

unsigned fz_watch_next(unsigned first)
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

/*
 * Lock the list that the watch is in, and return its descriptor.  Another thread may move the
 * watch to a copy meanwhile.
 */
static int lock_watch(const struct fz_watch *w)
{
	for (;;) {
		/*
		 * relaxed: w->fd changes only under the lock, and is checked again once the lock
		 * is held.
		 */
		int fd = atomic_load_explicit(&w->fd, memory_order_relaxed);

		fz_lock_acquire(lock_of(fd));
		if (atomic_load_explicit(&w->fd, memory_order_relaxed) == fd)
			return fd;
		fz_lock_release(lock_of(fd));
	}
}

/* Under the lock. */
static bool is_ring(int fd)
{
	const struct fz_watch *head = head_of(fd), *w = head;

	while (w) {
		if (w->next->prev != w || !w->linked ||
		    atomic_load_explicit(&w->fd, memory_order_relaxed) != fd)
			return false;
		w = w->next == head ? NULL : w->next;
	}
	return true;
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
	FZ_ASSERT_SLOW(is_ring(fd));
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
	FZ_ASSERT_SLOW(is_ring(fd));
	atomic_fetch_sub_explicit(&w->on->watching, 1, memory_order_relaxed);
}

static struct fz_watch *next_in(int fd, const struct fz_watch *w)
{
	return w->next == head_of(fd) ? NULL : w->next;
}

static int arm(struct fz_epoll *e, int fd, uint32_t events)
{
	long err;

	do {
		err = fz_epoll_control(e, EPOLL_CTL_MOD, fd, events | EPOLLONESHOT);
		if (err == -ENOENT)
			err = fz_epoll_control(e, EPOLL_CTL_ADD, fd, events | EPOLLONESHOT);
		/* EEXIST: another thread has closed fd and opened it again in between. */
	} while (err == -EEXIST);
	return (int)err;
}

/*
 * Arm fd on e for one event: for each watch on e that has not fired yet.  Leave out watches that
 * want any of `served`: the fiber that was woken for those events arms for them when it is done.
 */
static int arm_locked(struct fz_epoll *e, int fd, uint32_t served)
{
	uint32_t events = 0, all = 0;
	bool wanted = false;

	for (struct fz_watch *w = head_of(fd); w; w = next_in(fd, w)) {
		all |= w->events;
		if (!next_in(fd, w))
			w->armed = all;
		if (w->on != e || w->fired || (w->events & served))
			continue;
		events |= w->events;
		wanted = true;
	}
	return wanted ? arm(e, fd, events) : 0;
}

/*
 * Arm for a watch that was just linked, and for those before it.  With thousands of threads at one
 * descriptor nobody may go through all of them for each: the watch before w knows.  An event that
 * nobody wants on e costs one shot, and arm_locked() arms again.
 */
static int arm_first(struct fz_epoll *e, int fd, struct fz_watch *w)
{
	w->armed = w->prev == w ? w->events : w->events | w->prev->armed;
	return arm(e, fd, w->armed);
}

static void wake_all_locked(int fd)
{
	for (struct fz_watch *w = head_of(fd); w; w = next_in(fd, w)) {
		w->fired = true;
		fz_backend_hooks.wake(w->ticket);
	}
}

/* arm_locked() for watches that wait already: if a filter forbids it, let all try again. */
static void rearm_locked(struct fz_epoll *e, int fd, uint32_t served)
{
	if (FZ_UNLIKELY(fz_epoll_is_denied(arm_locked(e, fd, served))))
		wake_all_locked(fd);
}

/* Unlock fd's list; close fd if it is a private copy and its last watch is gone. */
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
	if (fz_epoll_is_lost())
		return -ENOSPC;
	w->on = e;
	w->ticket = ticket;
	fz_raise_to(&highest, fd);
	fz_lock_acquire(lock_of(fd));
	link_locked(fd, w);
	/*
	 * seq_cst: pairs with fz_op_closed().  Either fz_op_closed() finds the watch, or the
	 * kernel, asked next, finds the descriptor closed.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	err = arm_first(e, fd, w);
	if (err)
		unlink_locked(fd, w);
	fz_lock_release(lock_of(fd));
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
		rearm_locked(w->on, fd, 0);
	release(w, fd);
}

void fz_watch_dispatch(struct fz_epoll *e, int fd, uint32_t ready)
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
		 * If something else has already ended this wait, the event goes to the next watch.
		 * In both cases the fiber comes to fz_watch_end(), which arms fd for the other
		 * watches.
		 */
		w->fired = true;
		if (fz_backend_hooks.wake(w->ticket) && w->exclusive)
			taken |= w->events;
	}
	/* No fiber is on its way to arm fd for watches that want other events: arm for them now. */
	rearm_locked(e, fd, ready);
	fz_lock_release(lock_of(fd));
}

void fz_watch_closed(int fd)
{
	fz_lock_acquire(lock_of(fd));
	wake_all_locked(fd);
	fz_lock_release(lock_of(fd));
}

void fz_watch_wake_all(void)
{
	for (unsigned fd = fz_watch_next(0); fd != UINT_MAX; fd = fz_watch_next(fd + 1))
		fz_watch_closed((int)fd);
	for (unsigned fd = fz_own_fd_next_kept(0); fd != UINT_MAX; fd = fz_own_fd_next_kept(fd + 1))
		if (in_table((int)fd) && head_of((int)fd))
			fz_watch_closed((int)fd);
}

void fz_watch_closing(int fd)
{
	int copy, low, high;

	if (!fz_watch_any(fd))
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
		/*
		 * No number is free for a copy: let the fibers try again, and learn that fd is
		 * closed.
		 */
		wake_all_locked(fd);
	} else if (!head_of(fd)) {
		fz_own_fd_drop(copy);
	} else {
		set_head(copy, head_of(fd));
		set_head(fd, NULL);
		for (struct fz_watch *w = head_of(copy); w; w = next_in(copy, w)) {
			atomic_store_explicit(&w->fd, copy, memory_order_relaxed);
			w->copied = true;
			/*
			 * The copy keeps the open file, and so the registration under number fd,
			 * alive: remove it.
			 */
			fz_epoll_control(w->on, EPOLL_CTL_DEL, fd, 0);
		}
		for (struct fz_watch *w = head_of(copy); w; w = next_in(copy, w))
			rearm_locked(w->on, copy, 0);
	}
	if (lock_of(low) != lock_of(high))
		fz_lock_release(lock_of(high));
	fz_lock_release(lock_of(low));
}

int fz_watch_init_table(void)
{
	_Atomic(struct fz_watch *) *none = NULL;
	long mem;

	if (load_heads())
		return 0;
	mem = fz_sys_mmap(TABLE_FDS * sizeof(struct fz_watch *), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (fz_sys_failed(mem))
		return (int)mem;
	/*
	 * release: pairs with load_heads().  Two owners may come here at once when the ring is
	 * lost; one table stays.
	 */
	if (!atomic_compare_exchange_strong_explicit(&heads, &none, (void *)mem,
						     memory_order_release,
						     memory_order_relaxed))
		fz_syscall2(__NR_munmap, mem, TABLE_FDS * sizeof(struct fz_watch *));
	return 0;
}

void fz_watch_after_fork(void)
{
	fz_sys_forget_pages(stripes, sizeof(stripes));
	if (load_heads())
		fz_syscall2(__NR_munmap, (long)load_heads(), TABLE_FDS * sizeof(struct fz_watch *));
	atomic_store_explicit(&heads, NULL, memory_order_relaxed);
}
