/* SPDX-License-Identifier: MIT */
#include "runtime/backend/watch.h"

#include <asm/errno.h>
#include <limits.h>
#include <linux/mman.h>

#include "runtime/backend/hooks.h"
#include "runtime/backend/kept_fd.h"
#include "runtime/backend/watch_lists.h"
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
 * The leader of the first group of each descriptor.  An entry is guarded by its stripe's lock; read without
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
 * Lock the stripe of the watch's descriptor, and return the descriptor.  Until the stripe is locked,
 * another thread may move the watch to a private copy, which changes the descriptor.
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
static bool is_sound(int fd)
{
	for (const struct fz_watch *leader = head_of(fd); leader; leader = leader->group.next)
		if (!fz_watch_group_is_sound(leader, fd))
			return false;
	return true;
}

/* The leader of fd's group on e; NULL: there is no group. */
static struct fz_watch *leader_of(int fd, const struct fz_epoll *e)
{
	struct fz_watch *leader = head_of(fd);

	while (leader && leader->on != e)
		leader = leader->group.next;
	return leader;
}

/* Make `to` the leader of the group of `leader`.  If `to` is NULL, the group is gone. */
static void change_leader(int fd, struct fz_watch *leader, struct fz_watch *to)
{
	struct fz_watch *before = head_of(fd), *at = leader->group.next;

	if (to) {
		to->group = leader->group;
		at = to;
	}
	if (before == leader) {
		set_head(fd, at);
		return;
	}
	while (before->group.next != leader)
		before = before->group.next;
	before->group.next = at;
}

static void link_locked(int fd, struct fz_watch *w)
{
	struct fz_watch *leader = leader_of(fd, w->on);

	if (!leader) {
		w->group = (struct fz_watch_group){ .next = head_of(fd) };
		set_head(fd, w);
		leader = w;
	}
	fz_watch_append(&leader->group.list[fz_watch_list(w)], w);
	w->linked = true;
	FZ_ASSERT_SLOW(is_sound(fd));
	/* relaxed: a count that the monitor and the owner sample. */
	atomic_fetch_add_explicit(&w->on->watching, 1, memory_order_relaxed);
}

static void unlink_locked(int fd, struct fz_watch *w)
{
	struct fz_watch *leader = leader_of(fd, w->on), *heir = NULL;

	fz_watch_take_out(&leader->group.list[fz_watch_list(w)], w);
	if (leader == w) {
		for (int i = 0; i < FZ_WATCH_LISTS && !heir; i++)
			heir = w->group.list[i];
		change_leader(fd, w, heir);
	}
	w->linked = false;
	FZ_ASSERT_SLOW(is_sound(fd));
	atomic_fetch_sub_explicit(&w->on->watching, 1, memory_order_relaxed);
}

/*
 * The shot was for w: wake its fiber.  Returns false if something else has already ended that wait, so
 * that the event is left for the next watch.  In both cases w's fiber comes to fz_watch_end(), which
 * arms fd for the other watches.
 */
static bool fire_locked(struct fz_watch_group *group, struct fz_watch *w)
{
	fz_watch_take_out(&group->list[fz_watch_list(w)], w);
	w->fired = true;
	fz_watch_append(&group->list[FZ_WATCH_FIRED], w);
	return fz_backend_hooks.wake(w->ticket);
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

/* What the exclusive watches of the group want. */
static uint32_t exclusive_events(const struct fz_watch_group *group)
{
	return (group->list[FZ_WATCH_READS] ? EPOLLIN : 0) |
	       (group->list[FZ_WATCH_WRITES] ? EPOLLOUT : 0);
}

/*
 * Arm fd on e, for one shot, for the events of all watches on e that have not fired yet.  Watches that
 * want any of `served` are left out: the fiber that was woken for those events arms for these watches
 * when it is done.
 */
static int arm_locked(struct fz_epoll *e, int fd, uint32_t served)
{
	struct fz_watch *leader = leader_of(fd, e), *shared;
	uint32_t events, all = 0;
	bool wanted;

	if (!leader)
		return 0;
	shared = leader->group.list[FZ_WATCH_SHARED];
	events = exclusive_events(&leader->group) & ~served;
	wanted = events;
	for (struct fz_watch *w = shared; w; w = fz_watch_follower(shared, w)) {
		all |= w->events;
		if (w->events & served)
			continue;
		events |= w->events;
		wanted = true;
	}
	if (shared)
		shared->prev->armed = all;
	return wanted ? arm(e, fd, events) : 0;
}

/*
 * Arm for w, which was just linked, and for all watches before it.  Thousands of threads may wait for one
 * descriptor, so this must not walk the lists: `armed` of the last shared watch has the events of all shared
 * watches.  It may have events that nobody wants any more; such an event costs one shot, and arm_locked() arms again.
 */
static int arm_first(struct fz_epoll *e, int fd, struct fz_watch *w)
{
	const struct fz_watch_group *group = &leader_of(fd, e)->group;
	struct fz_watch *shared = group->list[FZ_WATCH_SHARED];

	if (!w->exclusive)
		w->armed = shared == w ? w->events : w->events | w->prev->armed;
	return arm(e, fd, exclusive_events(group) | (shared ? shared->prev->armed : 0));
}

static void wake_all_locked(int fd)
{
	for (struct fz_watch *leader = head_of(fd); leader; leader = leader->group.next) {
		struct fz_watch_group *group = &leader->group;

		for (int i = 0; i < FZ_WATCH_FIRED; i++)
			while (group->list[i])
				fire_locked(group, group->list[i]);
	}
}

/* arm_locked() for watches that wait already: if a filter forbids epoll_ctl, let all of their fibers try again. */
static void rearm_locked(struct fz_epoll *e, int fd, uint32_t served)
{
	if (FZ_UNLIKELY(fz_epoll_is_denied(arm_locked(e, fd, served))))
		wake_all_locked(fd);
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

bool fz_watch_end(struct fz_watch *w)
{
	bool last;
	int fd;

	if (!w->linked)
		return false;
	fd = lock_watch(w);
	unlink_locked(fd, w);
	if (w->fired)
		rearm_locked(w->on, fd, 0);
	/* Unwatch the copy, since the caller may close it: see fz_op_unwatch(). */
	if (FZ_UNLIKELY(w->copied) && !leader_of(fd, w->on))
		fz_epoll_remove(w->on, fd);
	last = w->copied && !head_of(fd);
	fz_lock_release(lock_of(fd));
	return last;
}

void fz_watch_dispatch(struct fz_epoll *e, int fd, uint32_t ready)
{
	static const uint32_t event[] = { [FZ_WATCH_READS] = EPOLLIN, [FZ_WATCH_WRITES] = EPOLLOUT };
	const uint32_t always = EPOLLERR | EPOLLHUP;
	struct fz_watch *leader, *w, *next;

	if (!in_table(fd))
		return;
	fz_lock_acquire(lock_of(fd));
	leader = leader_of(fd, e);
	if (!leader)
		goto out;
	for (w = leader->group.list[FZ_WATCH_SHARED]; w; w = next) {
		next = fz_watch_follower(leader->group.list[FZ_WATCH_SHARED], w);
		if (ready & (w->events | always))
			fire_locked(&leader->group, w);
	}
	for (int i = FZ_WATCH_READS; i <= FZ_WATCH_WRITES; i++)
		while ((w = leader->group.list[i]) && ready & (event[i] | always))
			if (fire_locked(&leader->group, w) && !(ready & always))
				break;
	/* No fiber is on its way to arm fd for watches that want other events: arm for them now. */
	rearm_locked(e, fd, ready);
out:
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
	for (unsigned fd = fz_kept_fd_next(0); fd != UINT_MAX; fd = fz_kept_fd_next(fd + 1))
		if (in_table((int)fd) && head_of((int)fd))
			fz_watch_closed((int)fd);
}

static void move_to_copy_locked(int fd, int copy)
{
	set_head(copy, head_of(fd));
	set_head(fd, NULL);
	for (struct fz_watch *leader = head_of(copy); leader; leader = leader->group.next) {
		for (int i = 0; i < FZ_WATCH_LISTS; i++) {
			struct fz_watch *first = leader->group.list[i];

			for (struct fz_watch *w = first; w; w = fz_watch_follower(first, w)) {
				atomic_store_explicit(&w->fd, copy, memory_order_relaxed);
				w->copied = true;
			}
		}
		/*
		 * The copy keeps the open file, and so the registration under number fd, alive:
		 * remove it.
		 */
		fz_epoll_remove(leader->on, fd);
	}
	for (struct fz_watch *leader = head_of(copy); leader; leader = leader->group.next)
		rearm_locked(leader->on, copy, 0);
}

void fz_watch_closing(int fd)
{
	int copy, low, high;

	if (!fz_watch_any(fd))
		return;
	copy = fz_kept_fd_make(fd);
	if (!in_table(copy)) {
		if (copy >= 0)
			fz_kept_fd_drop(copy);
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
		fz_kept_fd_drop(copy);
	} else {
		move_to_copy_locked(fd, copy);
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
