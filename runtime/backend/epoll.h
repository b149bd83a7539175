/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_EPOLL_H
#define FZ_RUNTIME_BACKEND_EPOLL_H

/*
 * runtime/backend/epoll.h - one epoll instance per processor: wake fibers when their
 * descriptors are ready.  For kernels, containers and sandboxes without io_uring.
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
 * (fz_epoll_closing): natively a call in progress keeps the open file.
 */

#include <sys/epoll.h>

#include "runtime/fiber/fiber.h"
#include "runtime/sched/park.h"

/* Part of a processor. */
struct fz_epoll {
	_Atomic int fd;			/* -1: not in use */
	_Atomic int event_fd;		/* written by fz_epoll_kick() */
	_Atomic uint32_t watching;	/* watches linked with this instance */
	/* Carriers that wait here and lost the processor: a kick stays until they left. */
	_Atomic int losers;
};

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

/* What an instance reported. */
enum { FZ_ARRIVALS = 128 };
struct fz_arrivals {
	int count;
	struct epoll_event events[FZ_ARRIVALS];
};

/* Returns 0 or -errno, with what failed in *ret_why. */
int fz_epoll_init(struct fz_epoll *e, const char **ret_why);
void fz_epoll_fini(struct fz_epoll *e);

/* Let completions on a ring end the wait, too; they are for who reaps the ring. */
void fz_epoll_add_ring(struct fz_epoll *e, int ring_fd);

/* In a fork's child: nobody waits for anything. */
void fz_epoll_after_fork(void);

static inline bool fz_epoll_active(const struct fz_epoll *e)
{
	/* relaxed: set before the second thread, or when the ring failed. */
	return atomic_load_explicit(&e->fd, memory_order_relaxed) >= 0;
}

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
void fz_epoll_closing(int fd);

/*
 * Descriptor fd has been closed or replaced: who began to wait in between, with what is gone
 * now, tries again.  In the runtime.
 */
void fz_epoll_closed(int fd);

/* Is anybody waiting on it?  Any thread; a hint. */
bool fz_epoll_is_watched(int fd);

/*
 * The lowest number >= first that somebody waits on and the program knows, or UINT_MAX.  In the
 * runtime.
 */
unsigned fz_epoll_next(unsigned first);

/*
 * Sleep until something is ready, the deadline, or a signal.  deadline 0: do not
 * sleep.  Not only by the owner.
 */
void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals);

/*
 * Wake those who wait for what arrived, as the owner or in nobody's name.  A kick is
 * only for the owner: it stays for the next wait otherwise.
 */
void fz_epoll_deliver(struct fz_epoll *e, struct fz_arrivals *arrivals, bool owned,
		      bool *ret_kicked);

/* Would fz_epoll_wait() return at once?  Any thread. */
bool fz_epoll_has_arrivals(const struct fz_epoll *e);

/* Make fz_epoll_wait() return.  Any thread, signal handlers too. */
void fz_epoll_kick(struct fz_epoll *e);

/* Move a descriptor away from number fd, because the program wants it. */
int fz_epoll_vacate_fd(struct fz_epoll *e, int fd);

/* Descriptor fd is about to be closed; whoever has a watch of it gets a copy next.  Any thread. */
void fz_epoll_remove(struct fz_epoll *e, int fd);

/* A carrier that waits has lost the processor (1), has left (-1).  Any carrier. */
static inline void fz_epoll_note_loser(struct fz_epoll *e, int change)
{
	/* seq_cst: before the kick that is for it. */
	atomic_fetch_add_explicit(&e->losers, change, memory_order_seq_cst);
}

#endif
