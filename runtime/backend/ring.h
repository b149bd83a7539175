/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_RING_H
#define FZ_RUNTIME_BACKEND_RING_H

/*
 * runtime/backend/ring.h - one io_uring per processor: queue requests, submit them
 * later in one system call, turn completions into wake-ups.
 *
 * The submission queue and the completion queue belong to the processor's owner while the owner is in
 * the runtime.  Only fz_ring_wait() needs no ownership: a carrier that loses the processor during it
 * sits in the kernel and changes nothing of the ring.
 */

#include <liburing.h>

#include "runtime/backend/choice.h"
#include "runtime/base/base.h"
#include "runtime/base/count.h"
#include "runtime/base/ticket.h"

struct fz_turn;

/*
 * A request in flight.  It lies on the stack of the fiber that waits for it.  The kernel knows it
 * by its address, so the fiber cannot leave the call before the request is complete, not even on
 * cancellation.
 */
struct fz_request {
	struct fz_fiber *fiber;
	/*
	 * Number of the wait that completion ends, or FZ_REQUEST_DONE.  The fiber changes it by
	 * compare-and-swap when it waits again; complete() exchanges it, and does not touch the
	 * request afterwards.
	 */
	_Atomic uint64_t number;
	int32_t result;			/* valid once number is FZ_REQUEST_DONE (acquire) */
	/* Written by the ring's owner only: */
	uint32_t more;			/* completions to come after the next one */
	uint32_t user_change;		/* fz_ring.user_changes when the request was queued */
	bool any;		/* several polls: the first completion is enough, and clears this */
	/* one of the completions was no error; was -EINVAL; was -EACCES.  Valid when result is. */
	bool ready, refused, denied;
	struct fz_request *next;	/* in fz_ring.surplus */
	/* The `what` for which fz_ring.waits counts this request; 0: not counted.  By the ring's owner. */
	uint32_t counted;
	/* If set: called with turn before the fiber is woken, by the ring's owner. */
	void (*pass_on)(struct fz_turn *turn);
	struct fz_turn *turn;
	/* In fz_ring.asked: set by the fiber, which waits until the ring's owner has cleared it. */
	_Atomic bool asked;
	struct fz_request *next_asked;
};
#define FZ_REQUEST_DONE 0

/*
 * How many requests of the ring wait for one thing (a descriptor, to read or to write).  A hint: if
 * two things that are waited for share a place in the table, one of them is not counted.
 */
enum { FZ_RING_WAITS = 256 };
struct fz_ring_waits {
	uint32_t what;			/* valid while count is not 0 */
	uint32_t count;
};

struct fz_ring {
	struct io_uring uring;
	_Atomic int fd;			/* changes if the program wants the number */
	uint32_t wait_flags;		/* of fz_ring_wait()'s system call; never changes */
	const _Atomic int *event_fd;	/* never changes; a write to it ends fz_ring_wait() */
	/*
	 * Never changes.  Points to the number of losers: carriers that have published requests, have lost
	 * the processor since, and have not left fz_ring_wait() yet.  A loser may still submit published
	 * requests.
	 */
	const _Atomic int *losers;
	/* requests queued or submitted, not completed; by the owner */
	uint32_t in_flight;
	struct fz_processor_counts *counts;	/* never changes; the owner counts */
	uint32_t tail_counted;		/* sqe_tail up to which requests are counted; by the owner */
	_Atomic uint32_t batch;		/* FZ_RING_BATCH times the mean of requests that were submitted at once; by the owner */
	const _Atomic uintptr_t *owner;	/* never changes; *owner names the present owner */
	/*
	 * The value of *owner when a request was last queued, submitted or reaped, and how often that
	 * value has changed.  By the owner.
	 */
	uintptr_t user;
	uint32_t user_changes;
	uint32_t settled;		/* completions before this index need no settle() */
	int event_armer;		/* tid of the kernel thread that polls event_fd; 0: none */
	uint32_t event_generation;
	uint64_t stale_event;		/* user_data of a poll of event_fd that must be removed; 0: none */
	/*
	 * Requests with `any` that have their first completion: their other polls must be cancelled.
	 * Their `more` already counts the answer to the cancellation.  Empty outside ring.c; by the owner.
	 */
	struct fz_request *surplus;
	/* Requests that the owner is asked to cancel, by fz_ring_ask_cancel().  Any thread. */
	_Atomic(struct fz_request *) asked;
	struct fz_ring_waits waits[FZ_RING_WAITS];	/* by the owner */
};

/*
 * Make a ring.  The caller has set ring->owner and ring->event_fd.  The ring's descriptor gets a
 * number above RLIMIT_NOFILE's soft limit if the hard limit allows it.  Returns 0 or -errno, with what failed
 * in *ret_why; -ENOSYS if the kernel lacks something that the library needs.
 */
int fz_ring_init(struct fz_ring *ring, const char **ret_why);
void fz_ring_fini(struct fz_ring *ring);

/* Cancel all requests with this user_data by a system call, and return its result.  Any thread. */
long fz_ring_sync_cancel(int fd, uint64_t user_data);

/*
 * Ask the kernel to end early all requests, and the poll of the eventfd.  Any thread.  Returns how many
 * requests the kernel has found, or -errno.
 */
long fz_ring_cancel_all(const struct fz_ring *ring);

/*
 * Does the kernel know this opcode?  For opcodes that fz_ring_init() does not insist on; call that
 * first.
 */
bool fz_ring_knows(uint8_t opcode);

/*
 * The kernel refuses requests with this opcode (io_uring restrictions): do not use the opcode any
 * more.  Without POLL_ADD, by which a kick ends the wait on a ring, all rings are given up for epoll.
 */
void fz_ring_forbid(uint8_t opcode);

static inline bool fz_ring_is_forbidden(uint8_t opcode)
{
	/* relaxed: with an old value, the kernel refuses the request once more. */
	return opcode < 64 && atomic_load_explicit(&fz_backend_choice.forbidden_ops,
						   memory_order_relaxed) >> opcode & 1;
}

/*
 * Instead of fz_ring_init(): an empty ring, on which nothing is ever queued or complete.  It needs
 * no fz_ring_fini().  Of the functions below, call only the hints, fz_ring_reap() and
 * fz_ring_vacate_fd(), which find nothing to do.
 */
void fz_ring_init_none(struct fz_ring *ring);

/*
 * Returns a free submission entry; submits the queued requests first if the queue is full.  By the
 * owner.  Never NULL.
 */
struct io_uring_sqe *fz_ring_sqe(struct fz_ring *ring);

/*
 * Hand queued requests to the kernel.  If the kernel takes none for long, the ring is given up.  If the ring
 * is lost, complete the requests with ECANCELED, after all losers (fz_ring.losers) have left.  If a loser has
 * not left after 1 s, the requests that it may submit stay queued: call this again when it has left.  By the
 * owner.
 */
void fz_ring_submit(struct fz_ring *ring);

/* The ring is lost, and its owner waits on epoll from now on: end the fz_ring_wait() of all losers. */
void fz_ring_leave(struct fz_ring *ring);

/* How many queued requests the kernel has not taken yet, or has refused to take.  Any thread; a hint. */
static inline uint32_t fz_ring_queued(const struct fz_ring *ring)
{
	const struct io_uring_sq *sq = &ring->uring.sq;

	/* relaxed: the kernel writes khead only while the owner, or a loser, is in io_uring_enter. */
	return sq->sqe_tail - __atomic_load_n(sq->khead, __ATOMIC_RELAXED);
}

/* Are there completions that have not been reaped?  Any thread; a hint. */
static inline bool fz_ring_has_completions(const struct fz_ring *ring)
{
	const struct io_uring_cq *cq = &ring->uring.cq;

	/* relaxed: fz_ring_reap() loads the tail with acquire before it reads completions. */
	return __atomic_load_n(cq->ktail, __ATOMIC_RELAXED) !=
	       __atomic_load_n(cq->khead, __ATOMIC_RELAXED);
}

/* Is the completion queue more than half full, so that the kernel may run out of room? */
static inline bool fz_ring_is_crowded(const struct fz_ring *ring)
{
	return io_uring_cq_ready(&ring->uring) > ring->uring.cq.ring_entries / 2;
}

/* Does the kernel have completions that it posts only when it is entered?  A hint. */
static inline bool fz_ring_has_task_work(const struct fz_ring *ring)
{
	/* relaxed: a hint; the system call orders what it posts. */
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

enum { FZ_RING_BATCH = 64, FZ_RING_BATCH_CALLS = 8 };	/* the mean is of about that many calls */

/* Count the requests that were queued since the last call: they go to the kernel now.  By the owner. */
static inline void fz_ring_count_requests(struct fz_ring *ring)
{
	const uint32_t n = ring->uring.sq.sqe_tail - ring->tail_counted;
	/* relaxed: others take it for a hint. */
	const uint32_t batch = atomic_load_explicit(&ring->batch, memory_order_relaxed);

	if (!n)
		return;
	fz_count(ring->counts, FZ_COUNT_requests, n);
	atomic_store_explicit(&ring->batch, batch - batch / FZ_RING_BATCH_CALLS +
			      n * (FZ_RING_BATCH / FZ_RING_BATCH_CALLS), memory_order_relaxed);
	ring->tail_counted = ring->uring.sq.sqe_tail;
}

/* Have several requests shared a system call lately?  Any thread; a hint. */
static inline bool fz_ring_shares_calls(const struct fz_ring *ring)
{
	return atomic_load_explicit(&ring->batch, memory_order_relaxed) >= 2 * FZ_RING_BATCH;
}

/* Enter the kernel so that it posts pending completions.  By the owner; does not sleep. */
void fz_ring_poll(struct fz_ring *ring);

/*
 * Process at most `most` completions: wake the fibers that wait for them, and queue cancellations
 * of requests that nobody waits for any more (fz_request.any).  By the owner.  Sets
 * *ret_kicked if the ring was kicked, leaves it alone otherwise.  Returns how many were processed.
 */
uint32_t fz_ring_reap(struct fz_ring *ring, uint32_t most, bool *ret_kicked);

/*
 * Before fz_ring_wait(): make the queued requests visible to the kernel.  By the owner.  Returns
 * how many there are.
 */
uint32_t fz_ring_publish(struct fz_ring *ring);

/*
 * Submit `published` requests and sleep until a completion, the deadline, or a signal.  The caller
 * may have lost the processor meanwhile: the kernel's lock orders this call with submissions of a
 * new owner, and the kernel takes each request once.  Reads no field but the descriptor and wait_flags.
 */
void fz_ring_wait(struct fz_ring *ring, uint32_t published, fz_nsec deadline);

/*
 * Before fz_ring_wait(): have writes to the eventfd reported to the kernel thread tid, which is the
 * caller's.  If a write were reported to another kernel thread that is CPU-bound, it would arrive only
 * with the next timer tick of that thread's CPU.  By the owner.
 */
void fz_ring_arm_event(struct fz_ring *ring, int tid);

/*
 * Ask the kernel to end the request early; the request still completes.  ring is the one on which
 * the request was queued; owned tells whether the caller owns that ring now.  Returns false if the
 * request was not looked for: a filter forbids the call, or the kernel is short of memory.
 */
bool fz_ring_cancel(struct fz_ring *ring, struct fz_request *request, bool owned);

/*
 * When fz_ring_cancel() has returned false and another thread owns the ring: ask the owner, which cancels the request at
 * its next fz_ring_cancel_asked().  Until fz_ring_is_asked() is false, the request must exist, even if it is complete.
 */
void fz_ring_ask_cancel(struct fz_ring *ring, struct fz_request *request);

static inline bool fz_ring_is_asked(const struct fz_request *request)
{
	/* acquire: pairs with the store in fz_ring_cancel_asked(), after which nobody touches the request. */
	return atomic_load_explicit(&request->asked, memory_order_acquire);
}

/* Is the owner asked to cancel something?  Any thread; a hint. */
static inline bool fz_ring_has_asked(const struct fz_ring *ring)
{
	/* relaxed: a fiber that asks calls the owner again and again until it is done (fz_sched_hasten()). */
	return atomic_load_explicit(&ring->asked, memory_order_relaxed) != NULL;
}

/* Cancel the requests for which fz_ring_ask_cancel() was called.  By the owner. */
void fz_ring_cancel_asked(struct fz_ring *ring);

/* Let the completion of sqe, from fz_ring_sqe(), complete this request.  By the owner. */
static inline void fz_ring_set_request(struct fz_ring *ring, struct io_uring_sqe *sqe,
				       struct fz_request *request)
{
	request->user_change = ring->user_changes;
	sqe->user_data = (uintptr_t)request;
}

/* How many requests of the ring are known to wait for `what`?  By the owner. */
static inline uint32_t fz_ring_waiting(const struct fz_ring *ring, uint32_t what)
{
	const struct fz_ring_waits *w = &ring->waits[what % FZ_RING_WAITS];

	return w->what == what ? w->count : 0;
}

/* Count the request, which is about to be queued, as waiting for `what` until it is complete.  By the owner. */
static inline void fz_ring_count_wait(struct fz_ring *ring, struct fz_request *request,
				      uint32_t what)
{
	struct fz_ring_waits *w = &ring->waits[what % FZ_RING_WAITS];

	if (w->count && w->what != what)
		return;
	w->what = what;
	w->count++;
	request->counted = what;
}

/*
 * If the ring's own descriptor has number fd, move it elsewhere, because the program wants fd.
 * Returns 0 or -errno.
 */
int fz_ring_vacate_fd(struct fz_ring *ring, int fd);

#endif
