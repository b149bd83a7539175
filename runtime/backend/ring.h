/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_RING_H
#define FZ_RUNTIME_BACKEND_RING_H

/*
 * runtime/backend/ring.h - one io_uring per processor: queue requests, submit them
 * later in one system call, turn completions into wake-ups.
 *
 * The submission queue and the completion queue belong to the processor's owner
 * in RUNTIME.  Only fz_ring_wait() is entered without exclusive right: a carrier
 * that has lost the processor meanwhile sits in the kernel and touches nothing.
 */

#include <liburing.h>

#include "runtime/base/base.h"
#include "runtime/base/ticket.h"

/*
 * A request in flight.  On the stack of the fiber that waits for it; the kernel
 * names it by address, so the fiber stays until it is done, whatever happens.
 */
struct fz_request {
	struct fz_fiber *fiber;
	/*
	 * Number of the wait that completion ends, or FZ_REQUEST_DONE.  The
	 * fiber changes it by compare-and-swap when it waits anew; completion
	 * exchanges it, and touches the request no more afterwards.
	 */
	_Atomic uint64_t number;
	int32_t result;			/* valid once DONE was read (acquire) */
	/* By the ring's owner only: */
	uint32_t more;			/* completions to come besides the next */
	uint32_t user_change;		/* fz_ring.user_changes when it was queued */
	bool wake_early;		/* at the first completion, not the last */
	bool refused;			/* by -EINVAL; valid as result */
};
#define FZ_REQUEST_DONE 0

struct fz_ring {
	struct io_uring uring;
	_Atomic int fd;			/* changes if a program wants the number */
	_Atomic int event_fd;		/* written by fz_ring_kick() */
	uint32_t in_flight;		/* requests submitted or queued, not completed */
	const _Atomic uintptr_t *owner;	/* const: names who has it now, alone */
	/* Who that was when something was last queued, submitted or reaped; by the owner. */
	uintptr_t user;
	uint32_t user_changes;
	uint32_t settled;		/* completions before this index need no settling */
	int event_armer;		/* tid of who polls event_fd; 0: nobody does */
	uint32_t event_generation;
};

/*
 * Make a ring; its owner is set already.  Its descriptors end up at high numbers, above RLIMIT_NOFILE's
 * soft limit where the hard limit allows.  Returns 0 or -errno, with what failed
 * in *ret_why; -ENOSYS if the kernel lacks something that we need.
 */
int fz_ring_init(struct fz_ring *ring, const char **ret_why);
void fz_ring_fini(struct fz_ring *ring);

/* Cancel what has this user_data, from any thread: a system call of its own.  Returns as that. */
long fz_ring_sync_cancel(int fd, uint64_t user_data);

/* Does the kernel know it?  Beyond what every ring needs.  After fz_ring_init(). */
bool fz_ring_knows(uint8_t opcode);

/*
 * Instead: no ring.  Nothing is ever queued or complete, and there is nothing to
 * fini; no other function may be called.
 */
void fz_ring_init_none(struct fz_ring *ring);

/*
 * The place of a new request; submits what is queued if it is full.  By the
 * owner.  Never NULL.
 */
struct io_uring_sqe *fz_ring_sqe(struct fz_ring *ring);

/* Hand queued requests to the kernel.  By the owner. */
void fz_ring_submit(struct fz_ring *ring);

/* What the kernel has not taken yet, be it that it refused to.  Any thread; a hint. */
static inline uint32_t fz_ring_queued(const struct fz_ring *ring)
{
	const struct io_uring_sq *sq = &ring->uring.sq;

	/* relaxed: the kernel writes it only while the owner is in it. */
	return sq->sqe_tail - __atomic_load_n(sq->khead, __ATOMIC_RELAXED);
}

/* Completions that nobody has looked at?  Any thread; a hint. */
static inline bool fz_ring_has_completions(const struct fz_ring *ring)
{
	const struct io_uring_cq *cq = &ring->uring.cq;

	/* relaxed: fz_ring_reap() orders what it reads. */
	return __atomic_load_n(cq->ktail, __ATOMIC_RELAXED) !=
	       __atomic_load_n(cq->khead, __ATOMIC_RELAXED);
}

/* So many that the kernel may run out of room for more? */
static inline bool fz_ring_is_crowded(const struct fz_ring *ring)
{
	return io_uring_cq_ready(&ring->uring) > ring->uring.cq.ring_entries / 2;
}

/* Completions that the kernel posts as soon as it is entered?  A hint. */
static inline bool fz_ring_has_task_work(const struct fz_ring *ring)
{
	/* relaxed: likewise. */
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Let the kernel post pending completions.  By the owner; does not sleep. */
void fz_ring_poll(struct fz_ring *ring);

/*
 * Wake whoever waits for the completions that are there, for `most` of them.  By
 * the owner.  Sets *ret_kicked if the ring was kicked, leaves it alone otherwise.
 */
uint32_t fz_ring_reap(struct fz_ring *ring, uint32_t most, bool *ret_kicked);

/*
 * Before fz_ring_wait(): let the kernel see what is queued.  By the owner.
 * Returns how many requests that are.
 */
uint32_t fz_ring_publish(struct fz_ring *ring);

/*
 * Hand `published` requests to the kernel and sleep until a completion, the
 * deadline, or a signal.  Not only by the owner: the kernel's lock orders it with
 * submissions of an owner that came meanwhile, and takes each request once.  Reads
 * no field but the descriptor.
 */
void fz_ring_wait(struct fz_ring *ring, uint32_t published, fz_nsec deadline);

/*
 * Before waiting: have kicks reported to the kernel thread that waits.  Reported to
 * another, which computes, they would arrive with its next timer tick.  By the
 * owner, whose tid that is.
 */
void fz_ring_arm_event(struct fz_ring *ring, int tid);

/* Make fz_ring_wait() return.  Any thread, signal handlers too. */
void fz_ring_kick(struct fz_ring *ring);

/*
 * Ask the kernel to end the request early; it still completes.  ring is the one
 * that the request was queued on; owned tells whether the caller owns it now.
 */
void fz_ring_cancel(struct fz_ring *ring, struct fz_request *request, bool owned);

/* Prepared by fz_ring_sqe's caller, the owner: completion belongs to request. */
static inline void fz_ring_set_request(struct fz_ring *ring, struct io_uring_sqe *sqe,
				       struct fz_request *request)
{
	request->user_change = ring->user_changes;
	sqe->user_data = (uintptr_t)request;
}

/* Move the ring's descriptor away from number fd, because the program wants it. */
int fz_ring_vacate_fd(struct fz_ring *ring, int fd);

#endif
