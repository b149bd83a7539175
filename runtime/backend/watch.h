/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_WATCH_H
#define FZ_RUNTIME_BACKEND_WATCH_H

/*
 * runtime/backend/watch.h - who waits for a descriptor by epoll.
 *
 * A fiber that must wait links a watch into the list of its descriptor, and arms
 * the descriptor in its processor's instance for everything that the watches there
 * want: one shot, so that nothing is reported that nobody waits for.  What we
 * remember never replaces asking: each wait arms anew, and the kernel says whether
 * the number still names what was registered (closed and used again, it does not).
 *
 * The one shot serves one of several who want the same (accept in many threads);
 * the rest is owed to the others: whoever was woken arms for them when it is done.
 *
 * When a descriptor with watches is closed, they go on with a private copy of it
 * (fz_watch_closing): natively a call in progress keeps the open file.
 */

#include "runtime/backend/epoll.h"
#include "runtime/base/ticket.h"

/*
 * On the stack of the fiber that waits.  Linked: guarded by the lock of fd's list.
 */
struct fz_watch {
	struct fz_watch *next, *prev;	/* circular */
	struct fz_epoll *on;
	struct fz_ticket ticket;
	_Atomic int fd;			/* the fiber reads it without the lock */
	bool linked;			/* by the fiber only */
	uint32_t events;		/* POLL*, which are EPOLL* */
	bool exclusive;			/* one of those who want the same is enough */
	bool fired;			/* the shot was for it: it owes one to others */
	bool copied;			/* fd is a private copy; the last one closes it */
};

/* Not linked yet. */
static inline void fz_watch_init(struct fz_watch *w, int fd, uint32_t events, bool exclusive)
{
	*w = (struct fz_watch){ .events = events, .exclusive = exclusive };
	atomic_store_explicit(&w->fd, fd, memory_order_relaxed);
}

/*
 * Link the watch, to report to ticket.  In the runtime, by the
 * owner of e; the ticket's wait is armed.  Returns 0 or -errno: EPERM for a file that
 * cannot be waited for and EBADF, or that there is no room for more; then it is not
 * linked.
 */
int fz_watch_start(struct fz_epoll *e, struct fz_watch *w, struct fz_ticket ticket);

/* Unlink if linked, and serve the others.  In the runtime. */
void fz_watch_end(struct fz_watch *w);

/*
 * Before descriptor fd is closed or replaced: whoever waits goes on with a copy.  In
 * the runtime.
 */
void fz_watch_closing(int fd);

/*
 * Descriptor fd has been closed or replaced: who began to wait in between, with what is gone
 * now, tries again.  In the runtime.
 */
void fz_watch_closed(int fd);

/* Is anybody waiting on it?  Any thread; a hint. */
bool fz_watch_any(int fd);

/*
 * The lowest number >= first that somebody waits on and the program knows, or UINT_MAX.  In the
 * runtime.
 */
unsigned fz_watch_next(unsigned first);

/* The instance has reported those events of fd: wake who waits for them.  In the runtime. */
void fz_watch_dispatch(struct fz_epoll *e, int fd, uint32_t ready);

/* Before the first watch.  Returns 0 or -errno. */
int fz_watch_init_table(void);

/* In a fork's child: nobody waits for anything. */
void fz_watch_after_fork(void);

#endif
