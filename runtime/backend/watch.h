/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_WATCH_H
#define FZ_RUNTIME_BACKEND_WATCH_H

/*
 * runtime/backend/watch.h - fibers that wait for a descriptor, on epoll.
 *
 * A fiber that must wait links a watch into a list of its descriptor, and arms the descriptor in
 * its processor's epoll instance for all events that the watches there want, for one shot
 * (EPOLLONESHOT): the kernel reports nothing that no fiber waits for.  Each wait arms the descriptor
 * anew, even if the lists show that it is armed, because only the kernel knows whether the number still
 * stands for the registered file.  After a close and another open it does not.
 *
 * One shot wakes one of several watches that want one event (accept in many threads).  The fiber that
 * was woken arms the descriptor for the other watches when it is done.
 *
 * When a descriptor with watches is closed, the watches go on with a private copy of it
 * (fz_watch_closing): natively, a call in progress keeps its open file.
 */

#include "runtime/backend/epoll.h"
#include "runtime/base/ticket.h"

/* The lists of a group.  A watch whose shot has come is in FIRED, until its fiber unlinks it. */
enum fz_watch_list {
	FZ_WATCH_READS,		/* exclusive, POLLIN; in the order of their arrival */
	FZ_WATCH_WRITES,	/* exclusive, POLLOUT */
	FZ_WATCH_SHARED,	/* not exclusive */
	FZ_WATCH_FIRED,
	FZ_WATCH_LISTS
};

/* The watches of one descriptor on one instance.  Stored in one of these watches, the leader. */
struct fz_watch_group {
	struct fz_watch *list[FZ_WATCH_LISTS];	/* first of each; circular */
	struct fz_watch *next;		/* leader of the descriptor's group on another instance */
};

/*
 * On the stack of the fiber that waits.  While linked, guarded by the lock of the descriptor's
 * stripe.
 */
struct fz_watch {
	struct fz_watch *next, *prev;	/* circular */
	struct fz_epoll *on;
	struct fz_ticket ticket;
	/* descriptor or private copy; the fiber reads it without the lock */
	_Atomic int fd;
	bool linked;			/* written by the fiber only */
	/* one event wakes only one of the exclusive watches that want it; events is POLLIN or POLLOUT */
	bool exclusive;
	/* the shot was for this watch; its fiber must arm for the others */
	bool fired;
	/* fd is a private copy; the fiber of the last watch that leaves closes it */
	bool copied;
	uint32_t events;		/* POLL*, which are EPOLL* */
	/* of a shared watch: the events of this watch and of all watches before it in its list, or more */
	uint32_t armed;
	struct fz_watch_group group;	/* of a leader */
};

/* Prepare a watch that is not linked. */
static inline void fz_watch_init(struct fz_watch *w, int fd, uint32_t events, bool exclusive)
{
	w->linked = w->fired = w->copied = false;
	w->events = events;
	w->exclusive = exclusive;
	atomic_store_explicit(&w->fd, fd, memory_order_relaxed);
}

/*
 * Link the watch and arm the descriptor: an event then ends the wait of ticket, which fz_wait_arm()
 * has returned.  In the runtime, by the owner of e.  Returns 0; or -EPERM if the file cannot be
 * waited for, -EBADF, or -ENOSPC or -ENOMEM if there is no room.  After an error the watch is not linked.
 */
int fz_watch_start(struct fz_epoll *e, struct fz_watch *w, struct fz_ticket ticket);

/*
 * Unlink the watch if it is linked, and arm the descriptor for the other watches.  In the runtime.  Returns true if its
 * descriptor is a private copy that nobody watches any more: the caller closes it by fz_kept_fd_drop(), which may last.
 */
bool fz_watch_end(struct fz_watch *w);

/*
 * Descriptor fd is about to be closed or replaced: the fibers that wait for it go on with a copy.
 * In the runtime.
 */
void fz_watch_closing(int fd);

/*
 * Descriptor fd has been closed or replaced: wake the fibers that began to wait for the old file
 * after fz_watch_closing(), so that they try again.  In the runtime.
 */
void fz_watch_closed(int fd);

/* Does a fiber wait for fd?  Any thread; a hint. */
bool fz_watch_any(int fd);

/*
 * Wake all fibers that wait for a descriptor, so that they try again: filters forbid to wait for events.  In
 * the runtime.
 */
void fz_watch_wake_all(void);

/*
 * Returns the lowest number >= first for which a fiber waits, private copies left out, or
 * UINT_MAX.  In the runtime.
 */
unsigned fz_watch_next(unsigned first);

/*
 * The instance e has reported the events `ready` for fd: wake the fibers that wait for them.  In
 * the runtime.
 */
void fz_watch_dispatch(struct fz_epoll *e, int fd, uint32_t ready);

/* Make the table, before the first watch.  Returns 0 or -errno. */
int fz_watch_init_table(void);

/* In a fork's child: forget all watches, since the fibers that wait do not exist here. */
void fz_watch_after_fork(void);

#endif
