/* SPDX-License-Identifier: MIT */
#include "runtime/io/op.h"

#include <asm/errno.h>
#include <limits.h>
#include <linux/poll.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/backend/ring.h"
#include "runtime/backend/watch.h"
#include "runtime/base/probe.h"
#include "runtime/base/time.h"
#include "runtime/base/uapi.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/hints.h"
#include "runtime/io/queued.h"
#include "runtime/io/turn.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

static bool names_descriptor(const struct fz_op *op)
{
	return op->opcode != FZ_UAPI_OP_WAITID && op->opcode != FZ_UAPI_OP_FUTEX_WAIT;
}

/* Queue the request.  Returns true if it must be submitted at once. */
static bool prepare(struct fz_processor *p, const struct fz_op *op, struct fz_request *request)
{
	struct fz_ring *ring = &p->backend.ring;
	struct io_uring_sqe *sqe = fz_ring_sqe(ring);

	io_uring_prep_rw(op->opcode, sqe, fz_op_fd(op), (const void *)(uintptr_t)op->addr,
			 op->len, op->off);
	sqe->rw_flags = (int)op->op_flags;
	sqe->file_index = op->file_index;
	sqe->addr3 = op->addr3;
	fz_ring_set_request(ring, sqe, request);
	FZ_PROBE4(submit, request->fiber->thread.tid, op->opcode, sqe->fd, request);
	ring->in_flight++;
	return (names_descriptor(op) && fz_queued_note(p, sqe->fd, ring->uring.sq.sqe_tail - 1)) ||
	       fz_op_is_prompt(op, p);
}

static bool is_done(struct fz_request *request)
{
	/* acquire: pairs with the exchange in complete(): the result is there. */
	return atomic_load_explicit(&request->number, memory_order_acquire) ==
	       FZ_REQUEST_DONE;
}

static struct fz_ticket start(struct fz_request *request, struct fz_fiber *self, unsigned flags)
{
	struct fz_ticket ticket = fz_wait_arm(self, flags);

	request->fiber = self;
	/* relaxed: nobody knows the request yet. */
	atomic_store_explicit(&request->number, ticket.number, memory_order_relaxed);
	return ticket;
}

/*
 * Wait again for a request that is under way.  With FZ_WAIT_UNINTERRUPTIBLE in flags, until it is
 * complete.
 */
static enum fz_why wait_more(struct fz_request *request, struct fz_fiber *self,
			     fz_nsec deadline, unsigned flags)
{
	struct fz_ticket ticket = fz_wait_arm(self, flags);
	/* relaxed: the compare-and-swap checks the value. */
	uint64_t old = atomic_load_explicit(&request->number, memory_order_relaxed);

	if (old == FZ_REQUEST_DONE ||
	    /* release: pairs with complete(), which wakes this wait from now on. */
	    !atomic_compare_exchange_strong_explicit(&request->number, &old, ticket.number,
						     memory_order_acq_rel,
						     memory_order_relaxed)) {
		fz_wait_disarm(self);
		return FZ_WHY_DONE;
	}
	return fz_park(self, deadline);
}

/* Ask p's owner to cancel the request.  The request must exist until the owner has taken it off its list: wait for that. */
static void ask_owner(struct fz_request *request, struct fz_fiber *self, struct fz_processor *p)
{
	fz_nsec pause = FZ_MSEC / 16;

	fz_ring_ask_cancel(&p->backend.ring, request);
	do {
		fz_sched_hasten(p);
		fz_wait_arm(self, FZ_WAIT_UNINTERRUPTIBLE);
		fz_park(self, fz_now() + pause);
		pause = pause < FZ_MSEC ? 2 * pause : FZ_MSEC;
	} while (fz_ring_is_asked(request));
	fz_sched_hasten_end(p);
}

/*
 * Park until a started request is complete.  If something else ends the wait first, cancel the request
 * and wait until it is complete.  Returns why the first wait has ended.
 */
static enum fz_why finish(struct fz_request *request, struct fz_fiber *self,
			  struct fz_processor *p, fz_nsec deadline)
{
	enum { VAIN_MOST = 16 };	/* a filter may answer anything to a system call: then ask the owner */
	enum fz_why why = fz_park(self, deadline);
	unsigned rounds = 0;

	if (is_done(request))
		return why;
	do {
		if (fz_processor_of(self) == p) {
			fz_ring_cancel(&p->backend.ring, request, true);
			while (!is_done(request))
				wait_more(request, self, FZ_FOREVER, FZ_WAIT_UNINTERRUPTIBLE);
			return why;
		}
		/*
		 * This fiber runs on another processor now.  The kernel cannot find a request that
		 * p's owner has not submitted yet, so cancel again until it has found it.
		 */
		if (FZ_UNLIKELY(!fz_ring_cancel(&p->backend.ring, request, false) || ++rounds % VAIN_MOST == 0))
			ask_owner(request, self, p);
		wait_more(request, self, fz_now() + FZ_MSEC, FZ_WAIT_UNINTERRUPTIBLE);
	} while (!is_done(request));
	return why;
}

/*
 * A request was refused with EACCES: does a filter forbid its opcode?  Then the kernel refuses it
 * before it looks at the descriptor.
 */
static bool is_forbidden(struct fz_fiber *self, const struct fz_op *op)
{
	const struct fz_op probe = { .opcode = op->opcode, .fd = -1 };
	struct fz_request request;
	struct fz_processor *p;

	do {
		/* No probe works without a descriptor: believe the answer.  Without rings, epoll is used next. */
		if (!names_descriptor(op) || fz_backend_kind() == FZ_BACKEND_EPOLL)
			return true;
		request = (struct fz_request){ .more = 0 };
		fz_enter_runtime(self);
		p = fz_processor_of(self);
		start(&request, self, FZ_WAIT_UNINTERRUPTIBLE);
		prepare(p, &probe, &request);
		fz_ring_submit(&p->backend.ring);
		finish(&request, self, p, FZ_FOREVER);
		fz_leave_runtime(self);
		/* ECANCELED: the probe never ran (see is_to_repeat()). */
	} while (request.result == -ECANCELED);
	return request.result == -EACCES;
}

/* Returns what the request waits for, descriptor and direction, as fz_ring_count_wait() wants it. */
static uint32_t what_of(const struct fz_op *op)
{
	return (uint32_t)(fz_op_fd(op) + 1) << 1 | (op->turn == POLLOUT);
}

/* Do so many requests wait for one descriptor that taking turns costs less than waking all of them? */
static bool is_crowded(const struct fz_ring *ring, const struct fz_op *op)
{
	enum { CROWD = 2 };

	return op->turn && (fz_ring_waiting(ring, what_of(op)) >= CROWD ||
				   FZ_UNLIKELY(fz_turn_any(fz_op_fd(op))));
}

/*
 * Submit the request and park until it is complete.  In the runtime; leaves it.  turn: the turn that the fiber
 * has, or NULL.
 */
static enum fz_why make_request(struct fz_fiber *self, const struct fz_op *op,
				struct fz_request *request, struct fz_turn *turn,
				fz_nsec deadline, unsigned flags)
{
	struct fz_processor *p = fz_processor_of(self);
	struct fz_pin *pin = fz_op_pin(op, NULL);
	struct fz_ticket ticket;
	enum fz_why why;
	bool prompt;

	if (op->hinted)
		fz_hints_begin(self, op->hinted);
	fz_waits_for(self, FZ_FOR_REQUEST, op);
	ticket = start(request, self, flags);
	if (FZ_UNLIKELY(turn != NULL)) {
		request->pass_on = fz_turn_end;
		request->turn = turn;
	} else if (op->turn) {
		fz_ring_count_wait(&p->backend.ring, request, what_of(op));
	}
	prompt = prepare(p, op, request);
	if (op->pin)
		fz_pin_begin(op->pin, ticket, op->opcode == IORING_OP_POLL_ADD);
	if (prompt)
		fz_submit_and_look(p);
	why = finish(request, self, p, deadline);
	if (FZ_UNLIKELY(turn != NULL))
		fz_pin_close_copy(self, turn->left);
	if (pin)
		fz_pin_end(pin, why);
	fz_hints_end(self);
	fz_leave_after(self, why);
	return why;
}

/*
 * Must the request be submitted again?  It ended with ECANCELED, but this fiber has not cancelled it: the
 * kernel thread that submitted it has ended, the ring is lost, or the descriptor was closed.
 */
static bool is_to_repeat(const struct fz_request *request, enum fz_why why)
{
	return why == FZ_WHY_DONE && request->result == -ECANCELED;
}

/* Returns what fz_op_wait() returns for a request that is over. */
static int result_of(struct fz_fiber *self, const struct fz_op *op,
		     const struct fz_request *request, enum fz_why why, fz_nsec deadline, unsigned flags)
{
	/*
	 * For a cancelled request a worker thread of the ring may answer EINTR, and the kernel
	 * EINVAL for a poll (fz_io_wait_ready).
	 */
	if (why != FZ_WHY_DONE && (request->result == -ECANCELED || request->result == -EINTR ||
				   request->result == -EINVAL))
		return fz_op_outcome(why);
	if (FZ_UNLIKELY(request->result == -EACCES) && is_forbidden(self, op)) {
		fz_ring_forbid(op->opcode);
		return why == FZ_WHY_DONE ? fz_op_wait(self, op, deadline, flags) :
					    fz_op_outcome(why);
	}
	return request->result;
}

/* fz_op_wait() for a descriptor that many fibers wait for: take turns.  In the runtime; leaves it. */
static __attribute__((noinline)) int wait_in_turn(struct fz_fiber *self, const struct fz_op *op,
				    fz_nsec deadline, unsigned flags)
{
	struct fz_request request = { .more = 0 };
	FZ_PINNED struct fz_pin own = FZ_PIN_INIT(op->fd);
	struct fz_op mine = *op;
	struct fz_turn turn;
	enum fz_why why = FZ_WHY_DONE;
	int copy;

	if (op->hinted)
		fz_hints_begin(self, op->hinted);
	fz_waits_for(self, FZ_FOR_REQUEST, op);
	if (fz_turn_begin(&turn, fz_op_fd(op), op->turn, fz_wait_arm(self, flags)))
		fz_wait_disarm(self);
	else
		why = fz_park(self, deadline);
	copy = why == FZ_WHY_DONE ? fz_turn_copy(&turn) : -1;
	if (FZ_UNLIKELY(copy >= 0)) {
		mine.pin = fz_op_pin(op, &own);
		fz_pin_adopt(mine.pin, copy);
	}
	if (why != FZ_WHY_DONE || FZ_UNLIKELY(copy == -EBADF || fz_backend_kind() == FZ_BACKEND_EPOLL)) {
		fz_turn_end(&turn);
		fz_pin_close_copy(self, turn.left);
		fz_hints_end(self);
		fz_leave_runtime(self);
		if (copy == -EBADF)
			return -EBADF;
		return why == FZ_WHY_DONE ? fz_op_ready_wait(self, &mine, deadline, flags) :
					    fz_op_outcome(why);
	}
	why = make_request(self, &mine, &request, &turn, deadline, flags);
	return is_to_repeat(&request, why) ?
		       fz_op_wait(self, &mine, deadline, flags) :
		       result_of(self, &mine, &request, why, deadline, flags);
}

int fz_op_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline, unsigned flags)
{
	struct fz_request request = { .more = 0 };
	enum fz_why why;

	do {
		if (FZ_UNLIKELY(fz_backend_kind() == FZ_BACKEND_EPOLL))
			return fz_op_ready_wait(self, op, deadline, flags);
		if (FZ_UNLIKELY(fz_ring_is_forbidden(op->opcode)))
			return FZ_OP_FORBIDDEN;
		fz_enter_runtime(self);
		if (FZ_UNLIKELY(fz_op_is_ended(self, flags))) {
			fz_leave_runtime(self);
			return FZ_OP_SIGNAL;
		}
		if (FZ_UNLIKELY(is_crowded(&fz_processor_of(self)->backend.ring, op)))
			return wait_in_turn(self, op, deadline, flags);
		request.counted = 0;
		why = make_request(self, op, &request, NULL, deadline, flags);
	} while (FZ_UNLIKELY(is_to_repeat(&request, why)));
	return result_of(self, op, &request, why, deadline, flags);
}

int fz_op_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n, fz_nsec deadline, unsigned flags)
{
	struct fz_request request = { .more = n - 1 };
	const struct fz_ready ready = { fds, n };
	struct fz_processor *p;
	bool prompt = false;
	enum fz_why why;

	if (FZ_UNLIKELY(fz_backend_kind() == FZ_BACKEND_EPOLL))
		return fz_op_ready_poll(self, fds, n, deadline, flags);
	fz_enter_runtime(self);
	if (FZ_UNLIKELY(fz_op_is_ended(self, flags))) {
		fz_leave_runtime(self);
		return FZ_OP_SIGNAL;
	}
	p = fz_processor_of(self);
	fz_waits_for(self, FZ_FOR_READY, &ready);
	start(&request, self, flags);
	for (unsigned i = 0; i < n; i++) {
		struct fz_op op = {
			.opcode = IORING_OP_POLL_ADD,
			.fd = fds[i].fd,
			.op_flags = (uint16_t)fds[i].events,
		};

		prompt |= prepare(p, &op, &request);
	}
	/* If the queue was full in between, some polls may be complete before the others were queued. */
	if (FZ_LIKELY(request.more == n - 1))
		request.any = true;
	else if (!is_done(&request))
		fz_ring_cancel(&p->backend.ring, &request, true);
	if (prompt)
		fz_ring_submit(&p->backend.ring);
	why = finish(&request, self, p, deadline);
	fz_leave_after(self, why);
	if (why != FZ_WHY_DONE && !request.ready)
		return fz_op_outcome(why);
	if (FZ_UNLIKELY(request.denied)) {
		fz_ring_forbid(IORING_OP_POLL_ADD);
		return fz_op_poll(self, fds, n, deadline, flags);
	}
	return request.refused && !request.ready ? -EINVAL : 1;
}

void fz_op_unwatch(int fd)
{
	if (FZ_LIKELY(!(fz_fdtab_get(fd) & FZ_FD_WATCHED)))
		return;
	for (uint32_t i = 0; i < fz_sched.count; i++)
		fz_epoll_remove(&fz_sched.processors[i].backend.epoll, fd);
}

/*
 * If the program has all the descriptors that it may have, a private copy needs a higher limit on descriptors.  While the
 * program makes a process, which would inherit that limit, the limit stays: wait until the process is made, at most 1 s.
 */
static void await_room(struct fz_fiber *self, int fd)
{
	const fz_nsec end = fz_now() + FZ_SEC;
	bool has_room;

	for (;;) {
		fz_enter_runtime(self);
		has_room = fz_kept_fd_has_room(fd);
		fz_leave_runtime(self);
		if (FZ_LIKELY(has_room) || fz_now() >= end)
			return;
		fz_pause(self, 50 * FZ_USEC);
	}
}

void fz_op_flush_fd(struct fz_fiber *self, int fd)
{
	const bool waited_for = fz_watch_any(fd) || fz_pin_is_pinned(fd) || fz_turn_any(fd);

	fz_queued_await(self, fd);
	if (waited_for)
		await_room(self, fd);
	if (self->kind != FZ_KIND_FIBER && !fz_watch_any(fd) && !fz_pin_is_pinned(fd) &&
	    !fz_turn_any(fd)) {
		fz_op_unwatch(fd);
		return;
	}
	fz_enter_runtime(self);
	/*
	 * Unwatch before the waiting calls get a copy: then a call that begins to wait in between
	 * gets a copy, too.
	 */
	fz_op_unwatch(fd);
	fz_watch_closing(fd);
	/*
	 * Turns before pins: a call that fz_pin_closing() wakes passes its turn on to a call that has
	 * no pin yet.  Turns again after pins: a new queue may have begun meanwhile.
	 */
	fz_turn_closing(fd);
	fz_pin_closing(fd);
	fz_turn_closing(fd);
	fz_leave_runtime(self);
}

void fz_op_closed(struct fz_fiber *self, int fd)
{
	/* seq_cst: pairs with fz_watch_start() and fz_turn_begin(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (FZ_LIKELY(!fz_watch_any(fd) && !fz_turn_any(fd)))
		return;
	fz_enter_runtime(self);
	fz_turn_closed(fd);
	/* Only on epoll: a request on the ring keeps the old open file. */
	if (fz_backend_kind() == FZ_BACKEND_EPOLL)
		fz_watch_closed(fd);
	fz_leave_runtime(self);
}

/* Returns the lowest descriptor >= first that a call waits for, or UINT_MAX. */
static unsigned next_used(struct fz_fiber *self, unsigned first)
{
	unsigned next, held, turn;

	fz_enter_runtime(self);
	next = fz_watch_next(first);
	held = fz_pin_next(first);
	turn = fz_turn_next(first);
	fz_leave_runtime(self);
	next = held < next ? held : next;
	return turn < next ? turn : next;
}

void fz_op_flush_range(struct fz_fiber *self, unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd <= (unsigned)fz_fdtab_highest(); fd++)
		fz_queued_await(self, (int)fd);
	for (unsigned fd = next_used(self, first); fd <= last && fd != UINT_MAX;
	     fd = next_used(self, fd + 1))
		fz_op_flush_fd(self, (int)fd);
}

void fz_op_closed_range(struct fz_fiber *self, unsigned first, unsigned last)
{
	/* seq_cst: as in fz_op_closed(). */
	atomic_thread_fence(memory_order_seq_cst);
	fz_enter_runtime(self);
	for (unsigned fd = fz_turn_next(first); fd <= last && fd != UINT_MAX;
	     fd = fz_turn_next(fd + 1))
		fz_turn_closed((int)fd);
	for (unsigned fd = fz_watch_next(first); fd <= last && fd != UINT_MAX;
	     fd = fz_watch_next(fd + 1))
		fz_watch_closed((int)fd);
	fz_leave_runtime(self);
}
