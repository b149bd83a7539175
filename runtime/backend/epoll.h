/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_EPOLL_H
#define FZ_RUNTIME_BACKEND_EPOLL_H

/*
 * runtime/backend/epoll.h - one epoll instance per processor: wakes fibers when their descriptors
 * are ready.  For kernels, containers and sandboxes without io_uring.
 */

#include <sys/epoll.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

/* Part of a processor (struct fz_backend). */
struct fz_epoll {
	_Atomic int fd;			/* -1: there is none */
	_Atomic int event_fd;		/* fz_epoll_kick() writes to it; the processor's ring polls it, too */
	_Atomic int ring_fd;		/* of the ring that was lost, or -1; written by the owner */
	_Atomic bool active;		/* in use instead of the ring; written by the owner */
	_Atomic uint32_t watching;	/* watches that wait on this instance */
	/*
	 * The number of losers: carriers that have lost the processor but still sleep in
	 * fz_backend_wait().  While there are losers, the eventfd of a kick stays unread, so that it wakes
	 * them, too.
	 */
	_Atomic int losers;
};

/* What one fz_epoll_wait() reported. */
enum { FZ_ARRIVALS = 128 };
struct fz_arrivals {
	int count;
	struct epoll_event events[FZ_ARRIVALS];
};

/* Returns 0 or -errno, with what failed in *ret_why. */
int fz_epoll_init(struct fz_epoll *e, const char **ret_why);
void fz_epoll_fini(struct fz_epoll *e);

/* Let completions on a ring end fz_epoll_wait(), too.  Its owner then reaps them from the ring. */
void fz_epoll_add_ring(struct fz_epoll *e, int ring_fd);

static inline bool fz_epoll_active(const struct fz_epoll *e)
{
	/*
	 * relaxed: written before there is a second thread, or by the owner when the ring is lost.
	 */
	return atomic_load_explicit(&e->active, memory_order_relaxed);
}

/* Use e from now on.  By the owner. */
static inline void fz_epoll_use(struct fz_epoll *e)
{
	atomic_store_explicit(&e->active, true, memory_order_relaxed);
}

/*
 * Sleep until something is ready, the deadline, or a signal.  deadline 0: do not sleep.  The
 * caller may be the owner or a carrier that has lost the processor.
 */
void fz_epoll_wait(struct fz_epoll *e, fz_nsec deadline, struct fz_arrivals *ret_arrivals);

/*
 * Wake the fibers that wait for what arrived.  owned: the caller is the owner.  Only the owner takes a
 * kick; otherwise the kick stays, and ends the next wait.
 */
void fz_epoll_deliver(struct fz_epoll *e, struct fz_arrivals *arrivals, bool owned,
		      bool *ret_kicked);

/* Would fz_epoll_wait() return at once?  Any thread. */
bool fz_epoll_has_arrivals(const struct fz_epoll *e);

/*
 * Make fz_epoll_wait() or fz_ring_wait() return.  Any thread, signal handlers too.  Returns false if a
 * filter forbids all calls that write: then only fz_epoll_wait() returns.
 */
bool fz_epoll_kick(struct fz_epoll *e);

/*
 * If one of the instance's own descriptors has number fd, move it elsewhere, because the program
 * wants fd.  Returns 0 or -errno.
 */
int fz_epoll_vacate_fd(struct fz_epoll *e, int fd);

/* Does a filter forbid all calls that ask an instance what is ready?  Then no event is reported any more. */
bool fz_epoll_is_lost(void);

static inline long fz_epoll_control(const struct fz_epoll *e, int operation, int fd,
				    uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)(int64_t)fd };

	return fz_syscall4(__NR_epoll_ctl, atomic_load_explicit(&e->fd, memory_order_relaxed),
			   operation, fd, (long)&event);
}

/* Has a seccomp filter answered err to fz_epoll_control()? */
static inline bool fz_epoll_is_denied(long err)
{
	return fz_sys_is_denied(err, __NR_epoll_ctl, EPOLL_CTL_DEL, -1, 0, 0, 0);
}

/*
 * Descriptor fd is about to be closed: take it out of the instance.  The caller then gives each
 * watch of fd a copy (fz_watch_closing).  Any thread.
 */
void fz_epoll_remove(struct fz_epoll *e, int fd);

/*
 * Count a carrier in fz_backend_wait() that has lost the processor (change 1), or that has left the
 * wait (-1).  Any carrier.
 */
static inline void fz_epoll_note_loser(struct fz_epoll *e, int change)
{
	/*
	 * seq_cst: the count is visible before the kick meant for that carrier; pairs with
	 * fz_epoll_deliver().
	 */
	atomic_fetch_add_explicit(&e->losers, change, memory_order_seq_cst);
}

#endif
