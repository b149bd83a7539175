/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_BACKEND_H
#define FZ_RUNTIME_BACKEND_BACKEND_H

/*
 * runtime/backend/backend.h - where the kernel tells a processor that something happened:
 * what the scheduler asks of ring.c (io_uring) or epoll.c.
 * Nothing here knows fibers or carriers: what is above is told by hooks.h.
 *
 * All processors use the same.  One that has no ring has an empty one, so that the
 * questions asked at every switch need not know.
 *
 * "By the owner" means the carrier that has the processor in RUNTIME.
 */

#include "runtime/backend/choice.h"
#include "runtime/backend/epoll.h"
#include "runtime/backend/hooks.h"
#include "runtime/backend/ring.h"

/* Part of a processor. */
struct fz_backend {
	struct fz_ring ring;
	struct fz_epoll epoll;
};

/* Descriptors of ours that one backend may have, at most. */
enum { FZ_BACKEND_FDS = 4 };

/* b's epoll instance, made now if the ring has just been lost.  By the owner. */
struct fz_epoll *fz_backend_epoll(struct fz_backend *b);

/*
 * Make those of n processors, stride bytes apart; as wished for, and all of the same
 * kind.  The ring.owner of each is set already.  Returns 0 or -errno, with what failed in
 * *ret_why; then nothing is left.
 */
int fz_backends_init(struct fz_backend *first, uint32_t n, size_t stride,
		     enum fz_backend_kind wish, const struct fz_backend_hooks *hooks,
		     const char **ret_why);
void fz_backends_fini(struct fz_backend *first, uint32_t n, size_t stride);

/* The i-th of its descriptors, or -1.  Any thread. */
int fz_backend_fd(const struct fz_backend *b, uint32_t i);

/* Move away from number fd, because the program wants it.  0 or -errno. */
int fz_backend_vacate_fd(struct fz_backend *b, int fd);

/* Requests that the kernel has not been told of.  Any thread; a hint. */
static inline uint32_t fz_backend_queued(const struct fz_backend *b)
{
	return fz_ring_queued(&b->ring);
}

/* Tell it.  By the owner. */
static inline void fz_backend_submit(struct fz_backend *b)
{
	fz_ring_submit(&b->ring);
}

/* Fibers wait for something that arrives here.  Any thread; a hint. */
static inline bool fz_backend_in_flight(const struct fz_backend *b)
{
	return b->ring.in_flight ||
	       /* relaxed: a hint. */
	       atomic_load_explicit(&b->epoll.watching, memory_order_relaxed);
}

/* Has something arrived, as far as memory tells?  Any thread; a hint. */
static inline bool fz_backend_has_completions(const struct fz_backend *b)
{
	return fz_ring_has_completions(&b->ring);
}

/* Should the owner ask the kernel now and then what has arrived?  Any thread. */
static inline bool fz_backend_wants_poll(const struct fz_backend *b)
{
	return fz_ring_has_task_work(&b->ring) ||
	       atomic_load_explicit(&b->epoll.watching, memory_order_relaxed);
}

/* Would it then wake somebody?  May be a system call.  Any thread; a hint. */
bool fz_backend_has_arrivals(const struct fz_backend *b);

/*
 * Tell the kernel what is queued, ask it what has happened, wake whoever waits for
 * that; does not sleep.  By the owner.
 */
void fz_backend_poll(struct fz_backend *b, bool *ret_kicked);

/* So much that the kernel may run out of room for more?  By the owner. */
static inline bool fz_backend_is_crowded(const struct fz_backend *b)
{
	return fz_ring_is_crowded(&b->ring);
}

/*
 * Wake whoever waits for what has arrived as far as memory tells, for `most` of it.
 * By the owner.
 */
static inline void fz_backend_reap(struct fz_backend *b, uint32_t most, bool *ret_kicked)
{
	fz_ring_reap(&b->ring, most, ret_kicked);
}

/*
 * Before a wait, by the owner: kicks are to reach the kernel thread tid.  Returns false
 * if there is something to do first: to reap, or fibers that it has made runnable.
 */
static inline bool fz_backend_arm(struct fz_backend *b, int tid)
{
	if (FZ_UNLIKELY(fz_backend_kind() == FZ_BACKEND_EPOLL)) {
		fz_backend_epoll(b);
		if (FZ_UNLIKELY(fz_ring_queued(&b->ring))) {
			fz_ring_submit(&b->ring);
			return false;
		}
	} else {
		fz_ring_arm_event(&b->ring, tid);
	}
	return !fz_ring_has_completions(&b->ring);
}

/* Then: what the wait is to submit.  By the owner. */
static inline uint32_t fz_backend_publish(struct fz_backend *b)
{
	return fz_epoll_active(&b->epoll) ? 0 : fz_ring_publish(&b->ring);
}

/*
 * Submit what was published and sleep until something arrives, the deadline, or a
 * signal.  Not only by the owner, and it changes nothing that is the owner's.
 */
static inline void fz_backend_wait(struct fz_backend *b, uint32_t published,
				   fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	if (fz_epoll_active(&b->epoll))
		fz_epoll_wait(&b->epoll, deadline, ret_arrivals);
	else
		fz_ring_wait(&b->ring, published, deadline);
}

/*
 * After it: wake whoever waits for that, by the owner, or if it is owned by another
 * now, by a carrier that has no processor.
 */
static inline void fz_backend_deliver(struct fz_backend *b, struct fz_arrivals *arrivals,
				      bool owned, bool *ret_kicked)
{
	if (arrivals->count)
		fz_epoll_deliver(&b->epoll, arrivals, owned, ret_kicked);
}

/* Make fz_backend_wait() return.  Any thread, signal handlers too. */
static inline void fz_backend_kick(struct fz_backend *b)
{
	if (fz_epoll_active(&b->epoll))
		fz_epoll_kick(&b->epoll);
	else
		fz_ring_kick(&b->ring);
}

#endif
