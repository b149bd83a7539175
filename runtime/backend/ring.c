/* SPDX-License-Identifier: MIT */
#include "runtime/backend/ring.h"

#include <errno.h>
#include <poll.h>

#include "runtime/backend/choice.h"
#include "runtime/backend/deny.h"
#include "runtime/backend/hooks.h"
#include "runtime/backend/liburing.h"
#include "runtime/backend/ring_internal.h"
#include "runtime/base/probe.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/base/uapi.h"

static const char LOST[] = "io_uring_enter in mid-run";

static uint64_t event_data(const struct fz_ring *ring)
{
	return (uint64_t)ring->event_generation << TAG_BITS | TAG_EVENT;
}

static void remove_poll(struct fz_ring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe;

	if (fz_ring_is_forbidden(IORING_OP_POLL_REMOVE)) {
		fz_ring_end(ring, user_data);
		return;
	}
	sqe = fz_ring_sqe(ring);
	io_uring_prep_poll_remove(sqe, user_data);
	sqe->user_data = TAG_IGNORE;
}

void fz_ring_arm_event(struct fz_ring *ring, int tid)
{
	struct io_uring_sqe *sqe;

	if (FZ_UNLIKELY(ring->stale_event != 0)) {
		remove_poll(ring, ring->stale_event);
		ring->stale_event = 0;
	}
	if (FZ_LIKELY(ring->event_armer == tid))
		return;
	if (ring->event_armer)
		remove_poll(ring, event_data(ring));
	ring->event_generation++;
	sqe = fz_ring_sqe(ring);
	io_uring_prep_poll_multishot(
		sqe, atomic_load_explicit(ring->event_fd, memory_order_relaxed), POLLIN);
	sqe->user_data = event_data(ring);
	ring->event_armer = tid;
}

static void note_user(struct fz_ring *ring)
{
	/* relaxed: the caller is the owner, and wrote it. */
	const uintptr_t owner = atomic_load_explicit(ring->owner, memory_order_relaxed);

	if (FZ_LIKELY(ring->user == owner))
		return;
	ring->user = owner;
	ring->user_changes++;
}

/*
 * The kernel thread that has submitted a request posts its completion, and drops the reference to the
 * file after that; it holds the ring's lock across both.  If another kernel thread reaps the completion
 * in between, and the fiber closes the descriptor, the file is not closed yet, because that reference is
 * left (tests/programs/io/io_closed.c).  So make a harmless call that waits for the ring's lock.
 */
static void settle(struct fz_ring *ring)
{
	/* acquire: completions before this tail are settled once the call below has returned. */
	ring->settled = __atomic_load_n(ring->uring.cq.ktail, __ATOMIC_ACQUIRE);
	fz_syscall4(__NR_io_uring_register,
		    atomic_load_explicit(&ring->fd, memory_order_relaxed),
		    IORING_UNREGISTER_EVENTFD, 0, 0);
}

/* Is the completion at `index` settled, or has the ring had one user since the request was queued?  Then no settle(). */
static bool is_settled(const struct fz_ring *ring, const struct fz_request *request,
		       unsigned index)
{
	return FZ_LIKELY(request->user_change == ring->user_changes) ||
	       (int)(index - ring->settled) < 0;
}

static bool has_losers(const struct fz_ring *ring)
{
	/* seq_cst: as in fz_epoll_note_loser().  The owner itself has counted them. */
	return atomic_load_explicit(ring->losers, memory_order_seq_cst) > 0;
}

/* Queued requests become visible to the kernel.  A loser may submit them, too: that counts as another user. */
static void note_visible(struct fz_ring *ring)
{
	note_user(ring);
	ring->user_changes += has_losers(ring);
}

struct io_uring_sqe *fz_ring_sqe(struct fz_ring *ring)
{
	struct io_uring_sqe *sqe;

	note_user(ring);
	while (FZ_FAULT(no_sqe) || !(sqe = io_uring_get_sqe(&ring->uring)))
		fz_ring_submit(ring);
	return sqe;
}

static long enter(const struct fz_ring *ring, unsigned flags)
{
	return fz_syscall6(__NR_io_uring_enter,
			   atomic_load_explicit(&ring->fd, memory_order_relaxed), 0, 0, flags, 0,
			   0);
}

void fz_ring_poll(struct fz_ring *ring)
{
	fz_count(ring->counts, FZ_COUNT_enters, 1);
	enter(ring, IORING_ENTER_GETEVENTS);
}

void fz_ring_complete(struct fz_ring *ring, struct fz_request *request, int32_t result,
		      bool is_answer)
{
	struct fz_ticket ticket = { .fiber = request->fiber };

	ring->in_flight--;
	FZ_PROBE3(complete, request, result, is_answer);
	if (!is_answer) {
		request->result = result;
		request->ready |= result >= 0;
		request->refused |= result == -EINVAL;
		request->denied |= result == -EACCES;
	}
	if (request->more) {
		request->more--;
		if (request->any && !is_answer)
			fz_ring_note_surplus(ring, request);
		return;
	}
	if (request->counted)
		ring->waits[request->counted % FZ_RING_WAITS].count--;
	if (FZ_UNLIKELY(request->pass_on != NULL))
		request->pass_on(request->turn);
	/*
	 * acq_rel: release publishes the result to the fiber's acquire load (is_done in
	 * runtime/io/op.c); acquire reads the number that the fiber published last.  After this
	 * exchange the request's memory may be gone.
	 */
	ticket.number = atomic_exchange_explicit(&request->number, FZ_REQUEST_DONE,
						 memory_order_acq_rel);
	fz_backend_hooks.wake(ticket);
}

/*
 * The ring is lost: make the losers leave fz_ring_wait().  Each loser has been kicked, but if the owner reaped
 * the kick before the loser entered the kernel, the loser sleeps there.  A completion in the queue ends the waits
 * of all losers, so have one come, and reap none before they have left.  Not more than one: if the queue overflows,
 * only io_uring_enter, which is lost, could fetch the rest.
 */
static void drive_out(const struct fz_ring *ring)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC / 10);
	const fz_nsec end = fz_now() + FZ_SEC;
	const uint64_t one = 1;

	while (has_losers(ring) && fz_now() < end) {
		if (!fz_ring_has_completions(ring)) {
			fz_ring_end(ring, event_data(ring));
			/* A filter may forbid that: also write to the eventfd, like fz_epoll_kick(). */
			fz_syscall3(__NR_write, atomic_load_explicit(ring->event_fd, memory_order_relaxed),
				    (long)&one, sizeof(one));
		}
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	}
}

void fz_ring_forbid(uint8_t opcode)
{
	/* relaxed: as in fz_ring_is_forbidden(). */
	if (opcode < 64)
		atomic_fetch_or_explicit(&fz_backend_choice.forbidden_ops, (uint64_t)1 << opcode,
					 memory_order_relaxed);
	if (opcode == IORING_OP_POLL_ADD)
		fz_backend_lose_ring("polls by io_uring", -EACCES);
}

/*
 * The ring is lost: complete with ECANCELED each request that the kernel has not taken and cannot take
 * any more; its fiber tries again, on epoll.  For a queued cancellation, whose request the kernel has,
 * cancel that request by a system call.
 */
static void drop_queued(struct fz_ring *ring)
{
	struct io_uring_sq *sq = &ring->uring.sq;
	unsigned head, tail = sq->sqe_tail;

	if (*sq->khead != *sq->ktail)
		drive_out(ring);
	/* seq_cst: pairs with fz_backend_note_left(). */
	atomic_thread_fence(memory_order_seq_cst);
	head = has_losers(ring) ? *sq->ktail : *sq->khead;
	for (unsigned i = head; i != tail; i++) {
		uint64_t data = sq->sqes[i & sq->ring_mask].user_data;
		const bool is_answer = fz_ring_tag_is_answer(data);

		if (is_answer)
			fz_ring_end(ring, data & ~(uint64_t)TAG_MASK);
		if (is_answer || (data & TAG_MASK) == TAG_REQUEST)
			fz_ring_complete(ring, (void *)(uintptr_t)(data & ~(uint64_t)TAG_MASK),
					 -ECANCELED, is_answer);
	}
	/* No kernel thread reads the queue from `head` on.  release: as in fz_ring_publish(). */
	sq->sqe_head = sq->sqe_tail = ring->tail_counted = head;
	__atomic_store_n(sq->ktail, head, __ATOMIC_RELEASE);
}

static struct fz_request *request_of(const struct io_uring_cqe *cqe)
{
	return (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)TAG_MASK);
}

/*
 * In a batch of completions, each request and each waiting fiber is a cache miss.  Prefetch the
 * request 8 completions ahead, and the fiber 4 ahead, when its request is in the cache.  The
 * request's memory stays valid until its last completion has been reaped.
 */
static void prefetch_ahead(const struct fz_ring *ring, unsigned head, unsigned ready)
{
	enum { REQUEST_AHEAD = 8, FIBER_AHEAD = 4 };
	const struct io_uring_cq *cq = &ring->uring.cq;
	const struct io_uring_cqe *cqe;

	if (ready > REQUEST_AHEAD)
		__builtin_prefetch(request_of(&cq->cqes[(head + REQUEST_AHEAD) & cq->ring_mask]),
				   1);
	if (ready <= FIBER_AHEAD)
		return;
	cqe = &cq->cqes[(head + FIBER_AHEAD) & cq->ring_mask];
	if ((cqe->user_data & TAG_MASK) < TAG_EVENT)
		__builtin_prefetch(request_of(cqe)->fiber, 1);
}

/* Fault point: swap the first two completions, if the kernel promises no order for them and both or none are settled. */
static void swap_completions(struct fz_ring *ring)
{
	struct io_uring_cq *cq = &ring->uring.cq;
	struct io_uring_cqe *first = &cq->cqes[*cq->khead & cq->ring_mask];
	struct io_uring_cqe *second = &cq->cqes[(*cq->khead + 1) & cq->ring_mask];
	struct io_uring_cqe was = *first;

	if ((first->user_data & TAG_MASK) >= TAG_EVENT ||
	    (second->user_data & TAG_MASK) >= TAG_EVENT ||
	    first->user_data == second->user_data || *cq->khead + 1 == ring->settled)
		return;
	*first = *second;
	*second = was;
}

/*
 * A poll of the eventfd has reported.  The kernel does not remove a poll while its report is on its way
 * to the kernel thread that armed it (EALREADY).  Such a poll would wake that kernel thread at each later
 * kick: note it, so that it is removed again.
 */
static void note_event(struct fz_ring *ring, const struct io_uring_cqe *cqe)
{
	const bool goes_on = cqe->flags & IORING_CQE_F_MORE;

	if (cqe->user_data != event_data(ring))
		ring->stale_event = goes_on ? cqe->user_data : ring->stale_event;
	else if (!goes_on)
		ring->event_armer = 0;
	if (FZ_UNLIKELY(cqe->res == -EACCES))
		fz_ring_forbid(IORING_OP_POLL_ADD);
}

uint32_t fz_ring_reap(struct fz_ring *ring, uint32_t most, bool *ret_kicked)
{
	struct io_uring_cqe *cqe;
	unsigned head, seen = 0;
	const unsigned ready = io_uring_cq_ready(&ring->uring);

	if (FZ_FAULT(late_completion))
		return 0;
	if (FZ_UNLIKELY(fz_ring_is_lost()) && ready)
		drive_out(ring);
	if (ready > 1 && FZ_FAULT(reordered_completions))
		swap_completions(ring);
	note_user(ring);
	io_uring_for_each_cqe(&ring->uring, head, cqe) {
		uint64_t tag = cqe->user_data & TAG_MASK;

		if (seen == ready || seen == most)
			break;
		prefetch_ahead(ring, head, ready - seen);
		seen++;
		if (tag == TAG_EVENT) {
			*ret_kicked = true;
			note_event(ring, cqe);
		} else if (tag == TAG_IGNORE) {
			if (FZ_UNLIKELY(cqe->res == -EACCES))
				fz_ring_forbid(IORING_OP_POLL_REMOVE);
		} else {
			if (!is_settled(ring, request_of(cqe), head))
				settle(ring);
			if (FZ_UNLIKELY(tag != TAG_REQUEST && cqe->res < 0))
				fz_ring_cancel_failed(ring, cqe->user_data, cqe->res);
			fz_ring_complete(ring, request_of(cqe), cqe->res, tag != TAG_REQUEST);
		}
	}
	io_uring_cq_advance(&ring->uring, seen);
	if (ring->surplus)
		fz_ring_cancel_surplus(ring);
	fz_count(ring->counts, FZ_COUNT_completions, seen);
	/* If `settled` stayed far behind, it would look as if it were ahead, once the index has wrapped. */
	if ((int)(*ring->uring.cq.khead - ring->settled) > 0)
		ring->settled = *ring->uring.cq.khead;
	return seen;
}

/*
 * Does io_uring_enter reach the kernel?  The kernel answers these two calls differently; a filter answers
 * both alike, perhaps with an error that looks transient.
 */
static bool is_reachable(const struct fz_ring *ring)
{
	const unsigned unknown_flag = 1U << 31;

	return enter(ring, 0) == 0 && enter(ring, unknown_flag) == -EINVAL;
}

/*
 * The kernel has not taken a request: because the completion queue is full (-EBUSY), or because it lacks
 * memory (-EAGAIN).  Let the kernel post its completions, which helps in both cases.
 */
static void make_room(struct fz_ring *ring, int error)
{
	fz_ring_poll(ring);
	if (error == -EAGAIN)
		fz_syscall0(__NR_sched_yield);
	if (error == -EBUSY)
		fz_ring_reap(ring, UINT32_MAX, &(bool){ false });
}

static bool is_transient(int n)
{
	return n == 0 || n == -EBUSY || n == -EAGAIN || n == -EINTR;
}

void fz_ring_submit(struct fz_ring *ring)
{
	enum { MOST_REFUSALS = 1000 };	/* in a row */
	uint32_t queued, refusals = 0;

	note_visible(ring);
	while (!fz_ring_is_lost() && (queued = fz_ring_queued(ring))) {
		int n;

		fz_deny_queued(ring);

		fz_backend_hooks.submits();
		fz_count(ring->counts, FZ_COUNT_enters, 1);
		fz_ring_count_requests(ring);
		n = FZ_FAULT(submit_again) ? -EAGAIN : FZ_FAULT(submit_busy) ? -EBUSY :
			FZ_FAULT(ring_lost) ? -EPERM : io_uring_submit(&ring->uring);

		if (fz_ring_queued(ring) < queued)
			refusals = 0;
		else if (is_transient(n) && ++refusals <= MOST_REFUSALS && is_reachable(ring))
			make_room(ring, n);
		else
			fz_backend_lose_ring(LOST, n);
	}
	if (FZ_UNLIKELY(fz_ring_is_lost())) {
		drop_queued(ring);
		fz_ring_cancel_surplus(ring);
	}
}

void fz_ring_leave(struct fz_ring *ring)
{
	drive_out(ring);
	fz_ring_submit(ring);
}

uint32_t fz_ring_publish(struct fz_ring *ring)
{
	struct io_uring_sq *sq = &ring->uring.sq;

	note_visible(ring);
	fz_deny_queued(ring);
	fz_ring_count_requests(ring);
	/* As liburing does it.  release: pairs with the kernel's acquire of the tail. */
	sq->sqe_head = sq->sqe_tail;
	__atomic_store_n(sq->ktail, sq->sqe_tail, __ATOMIC_RELEASE);
	return fz_ring_queued(ring);
}

void fz_ring_wait(struct fz_ring *ring, uint32_t published, fz_nsec deadline)
{
	const struct __kernel_timespec late = fz_timespec(2 * FZ_MSEC);
	const struct __kernel_timespec later = fz_timespec(50 * FZ_MSEC);
	struct __kernel_timespec ts;
	struct io_uring_getevents_arg arg = { .sigmask_sz = sizeof(uint64_t) };
	long err;

	if (deadline != FZ_FOREVER) {
		fz_nsec now = fz_now();

		ts = fz_timespec(deadline > now ? deadline - now : 0);
		arg.ts = (uintptr_t)&ts;
	}
	if (published && FZ_FAULT(later_submit))
		fz_syscall2(__NR_nanosleep, (long)&later, 0);
	if (FZ_FAULT(late_submit))
		fz_syscall2(__NR_nanosleep, (long)&late, 0);
	if (published)
		fz_backend_hooks.submits();
	err = fz_syscall6(__NR_io_uring_enter,
			  atomic_load_explicit(&ring->fd, memory_order_relaxed), published,
			  FZ_FAULT(wait_eintr) ? 0 : 1,
			  ring->wait_flags, (long)&arg, sizeof(arg));
	/* After -ETIME, -EINTR and other errors the caller checks for work anyway. */
	if (FZ_LIKELY(err >= (long)published) || (err == -ETIME && fz_now() >= deadline))
		return;
	/* The kernel itself never answers such an error: a filter does, and will do so again. */
	if ((err < 0 && err != -ETIME && !is_transient((int)err)) || !is_reachable(ring))
		fz_backend_lose_ring(LOST, err < 0 ? (int)err : 0);
}
