/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_EPOLL_H
#define FZ_RUNTIME_BACKEND_EPOLL_H

/*
 * runtime/backend/epoll.h - one epoll instance per processor: wake fibers when their
 * descriptors are ready.  For kernels, containers and sandboxes without io_uring.
 */

#include <sys/epoll.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

/* Part of a processor. */
struct fz_epoll {
	_Atomic int fd;			/* -1: not in use */
	_Atomic int event_fd;		/* written by fz_epoll_kick() */
	_Atomic uint32_t watching;	/* watches linked with this instance */
	/* Carriers that wait here and lost the processor: a kick stays until they left. */
	_Atomic int losers;
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

static inline bool fz_epoll_active(const struct fz_epoll *e)
{
	/* relaxed: set before the second thread, or when the ring failed. */
	return atomic_load_explicit(&e->fd, memory_order_relaxed) >= 0;
}

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

static inline long fz_epoll_control(const struct fz_epoll *e, int operation, int fd,
				    uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)(int64_t)fd };

	return fz_syscall4(__NR_epoll_ctl, atomic_load_explicit(&e->fd, memory_order_relaxed),
			   operation, fd, (long)&event);
}

/* Descriptor fd is about to be closed; whoever has a watch of it gets a copy next.  Any thread. */
void fz_epoll_remove(struct fz_epoll *e, int fd);

/* A carrier that waits has lost the processor (1), has left (-1).  Any carrier. */
static inline void fz_epoll_note_loser(struct fz_epoll *e, int change)
{
	/* seq_cst: before the kick that is for it. */
	atomic_fetch_add_explicit(&e->losers, change, memory_order_seq_cst);
}

#endif
