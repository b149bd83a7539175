/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_BACKEND_H
#define FZ_RUNTIME_BACKEND_BACKEND_H

/*
 * runtime/backend/backend.h - how the kernel tells a processor that something happened: what the
 * scheduler asks of ring.c (io_uring) or epoll.c.  A backend knows no fibers and no carriers; it
 * reports to the scheduler through hooks.h.
 *
 * All processors use one kind of backend.  With epoll a processor's ring is empty
 * (fz_ring_init_none), so that the questions asked at every switch need no test of the kind.
 *
 * Each ring has an epoll instance beside it from the start: a filter that forbids io_uring while
 * the program runs (seccomp) may forbid making descriptors and memory, too.
 *
 * "By the owner" means: called by the carrier that has the processor and is in the runtime.
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

/* The most own descriptors that one backend can have. */
enum { FZ_BACKEND_FDS = 3 };

/* How many own descriptors a backend of this kind has, at most. */
static inline uint32_t fz_backend_fds(enum fz_backend_kind wish)
{
	return wish == FZ_BACKEND_EPOLL ? FZ_BACKEND_FDS - 1 : FZ_BACKEND_FDS;
}

/* Returns b's epoll instance.  b uses that from now on, even if it had a ring.  By the owner. */
struct fz_epoll *fz_backend_epoll(struct fz_backend *b);

/*
 * Make the backends of n processors, stride bytes apart, all of one kind, which wish selects.  The
 * caller has set each ring.owner.  Returns 0 or -errno, with what failed in *ret_why; after a
 * failure no backend is left.
 */
int fz_backends_init(struct fz_backend *first, uint32_t n, size_t stride,
		     enum fz_backend_kind wish, const struct fz_backend_hooks *hooks,
		     const char **ret_why);
void fz_backends_fini(struct fz_backend *first, uint32_t n, size_t stride);

/*
 * Returns b's own descriptor number i (0 .. FZ_BACKEND_FDS - 1), or -1 if it is not open.  Any
 * thread.
 */
int fz_backend_fd(const struct fz_backend *b, uint32_t i);

/*
 * If one of b's own descriptors has number fd, move it elsewhere, because the program wants fd.
 * Returns 0 or -errno.
 */
int fz_backend_vacate_fd(struct fz_backend *b, int fd);

/* How many requests are queued and not yet submitted.  Any thread; a hint. */
static inline uint32_t fz_backend_queued(const struct fz_backend *b)
{
	return fz_ring_queued(&b->ring);
}

/* Submit the queued requests.  By the owner. */
static inline void fz_backend_submit(struct fz_backend *b)
{
	fz_ring_submit(&b->ring);
}

/* Does any fiber wait for something that arrives at this backend?  Any thread; a hint. */
static inline bool fz_backend_in_flight(const struct fz_backend *b)
{
	return b->ring.in_flight ||
	       /* relaxed: a hint. */
	       atomic_load_explicit(&b->epoll.watching, memory_order_relaxed);
}

/* Does the completion queue hold completions?  No system call.  Any thread; a hint. */
static inline bool fz_backend_has_completions(const struct fz_backend *b)
{
	return fz_ring_has_completions(&b->ring);
}

/* Must the owner call fz_backend_poll() from time to time?  Any thread; a hint. */
static inline bool fz_backend_wants_poll(const struct fz_backend *b)
{
	return fz_ring_has_task_work(&b->ring) || FZ_UNLIKELY(fz_ring_has_asked(&b->ring)) ||
	       atomic_load_explicit(&b->epoll.watching, memory_order_relaxed);
}

/*
 * Would fz_backend_poll() find something to wake a fiber for?  May make a system call.  Any
 * thread; a hint.
 */
bool fz_backend_has_arrivals(const struct fz_backend *b);

/*
 * Submit queued requests, ask the kernel what has happened, and wake the fibers that wait for it.
 * Sets *ret_kicked if the processor was kicked.  Does not sleep.  By the owner.
 */
void fz_backend_poll(struct fz_backend *b, bool *ret_kicked);

/*
 * Is the completion queue more than half full, so that the kernel may run out of room?  By the
 * owner.
 */
static inline bool fz_backend_is_crowded(const struct fz_backend *b)
{
	return fz_ring_is_crowded(&b->ring);
}

/*
 * Process at most `most` completions from the completion queue: wake the fibers that wait for
 * them.  No system call but for settle() in ring.c.  By the owner.
 */
static inline void fz_backend_reap(struct fz_backend *b, uint32_t most, bool *ret_kicked)
{
	fz_ring_reap(&b->ring, most, ret_kicked);
}

/* For fz_backend_arm(): the ring is lost, so drop its queued requests.  Returns true if fewer are queued now. */
bool fz_backend_drop(struct fz_backend *b);

/*
 * First step of a wait, by the owner: let kicks reach the kernel thread tid.  Returns false if the
 * owner must not wait yet: there are completions to reap, or submitting has made fibers runnable.
 */
static inline bool fz_backend_arm(struct fz_backend *b, int tid)
{
	if (FZ_UNLIKELY(fz_backend_kind() == FZ_BACKEND_EPOLL)) {
		fz_backend_epoll(b);
		if (FZ_UNLIKELY(fz_ring_queued(&b->ring)) && fz_backend_drop(b))
			return false;
	} else {
		fz_ring_arm_event(&b->ring, tid);
	}
	return !fz_ring_has_completions(&b->ring);
}

/* Second step of a wait, by the owner: returns how many requests fz_backend_wait() must submit. */
static inline uint32_t fz_backend_publish(struct fz_backend *b)
{
	return fz_epoll_active(&b->epoll) ? 0 : fz_ring_publish(&b->ring);
}

/*
 * Third step of a wait: submit `published` requests and sleep until something arrives, the
 * deadline, or a signal.  The caller may have lost the processor meanwhile; so this changes nothing
 * that belongs to the owner.
 */
static inline void fz_backend_wait(struct fz_backend *b, uint32_t published,
				   fz_nsec deadline, struct fz_arrivals *ret_arrivals)
{
	if (fz_epoll_active(&b->epoll))
		fz_epoll_wait(&b->epoll, deadline, ret_arrivals);
	else
		fz_ring_wait(&b->ring, published, deadline);
}

/* After fz_backend_wait(), by the owner: submit the published requests if the kernel has not taken them. */
static inline void fz_backend_finish_wait(struct fz_backend *b, uint32_t published)
{
	if (FZ_UNLIKELY(published && fz_backend_queued(b)))
		fz_backend_submit(b);
}

/*
 * Last step of a wait: wake the fibers that wait for what fz_backend_wait() reported.  owned: the
 * caller is the owner; false: the processor was taken from the caller, which has none now.
 */
static inline void fz_backend_deliver(struct fz_backend *b, struct fz_arrivals *arrivals,
				      bool owned, bool *ret_kicked)
{
	if (!arrivals->count)
		return;
	if (owned)
		fz_count(b->ring.counts, FZ_COUNT_completions, (uint64_t)arrivals->count);
	else
		fz_count_outside(FZ_COUNT_completions, (uint64_t)arrivals->count);
	fz_epoll_deliver(&b->epoll, arrivals, owned, ret_kicked);
}

/*
 * Count a loser: a carrier that is in fz_backend_wait(), and has lost the processor.  Called by the new
 * owner of the processor, before it kicks the loser.
 */
static inline void fz_backend_note_loser(struct fz_backend *b)
{
	fz_epoll_note_loser(&b->epoll, 1);
}

/* A loser (fz_backend_note_loser()) has left fz_backend_wait().  By that carrier. */
void fz_backend_note_left(struct fz_backend *b);

/* For fz_backend_kick(), if a filter forbids all calls that write: give up all rings, and end the wait on b's ring. */
void fz_backend_kick_from_ring(struct fz_backend *b);

/* Make fz_backend_wait() return.  Any thread, signal handlers too. */
static inline void fz_backend_kick(struct fz_backend *b)
{
	if (FZ_UNLIKELY(!fz_epoll_kick(&b->epoll)) && !fz_epoll_active(&b->epoll))
		fz_backend_kick_from_ring(b);
}

#endif
