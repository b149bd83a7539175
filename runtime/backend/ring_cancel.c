/* SPDX-License-Identifier: MIT */
/*
 * runtime/backend/ring_cancel.c - ask the kernel to end requests early: one request, the other polls
 * when the first of several polls is complete, or all requests.
 */
#include <errno.h>

#include "runtime/backend/liburing.h"
#include "runtime/backend/ring_internal.h"
#include "runtime/base/sys.h"
#include "runtime/base/uapi.h"

static long cancel_by_call(int fd, uint64_t user_data, uint32_t flags)
{
	struct fz_uapi_sync_cancel reg = { .addr = user_data, .fd = -1, .flags = flags };

	return fz_syscall4(__NR_io_uring_register, fd, FZ_UAPI_REGISTER_SYNC_CANCEL,
			   (long)&reg, 1);
}

long fz_ring_sync_cancel(int fd, uint64_t user_data)
{
	return cancel_by_call(fd, user_data, FZ_UAPI_ASYNC_CANCEL_ALL);
}

long fz_ring_end(const struct fz_ring *ring, uint64_t user_data)
{
	return fz_ring_sync_cancel(atomic_load_explicit(&ring->fd, memory_order_relaxed), user_data);
}

long fz_ring_cancel_all(const struct fz_ring *ring)
{
	return cancel_by_call(atomic_load_explicit(&ring->fd, memory_order_relaxed), 0,
			      FZ_UAPI_ASYNC_CANCEL_ALL | FZ_UAPI_ASYNC_CANCEL_ANY);
}

void fz_ring_cancel_failed(struct fz_ring *ring, uint64_t user_data, int error)
{
	const bool removes = (user_data & TAG_MASK) == TAG_REMOVE;

	/*
	 * EALREADY: a poll could not be removed, because a wake-up was on its way to it.  The poll may
	 * find that nothing is ready, and go on waiting: cancel it by a system call.
	 */
	if (error == -EACCES)
		fz_ring_forbid(removes ? IORING_OP_POLL_REMOVE : IORING_OP_ASYNC_CANCEL);
	if (error == -EACCES || (error == -EALREADY && removes))
		fz_ring_end(ring, user_data & ~(uint64_t)TAG_MASK);
}

void fz_ring_note_surplus(struct fz_ring *ring, struct fz_request *request)
{
	request->any = false;
	request->more++;
	ring->in_flight++;
	request->next = ring->surplus;
	ring->surplus = request;
}

/*
 * Remove the request's n polls that are left, n > 0.  Not by IORING_OP_ASYNC_CANCEL, which also searches
 * the kernel's worker threads for each poll.
 */
static void remove_polls(struct fz_ring *ring, struct fz_request *request, uint32_t n)
{
	/* fz_ring_note_surplus() has counted one answer already. */
	request->more += n - 1;
	ring->in_flight += n - 1;
	while (n--) {
		struct io_uring_sqe *sqe = fz_ring_sqe(ring);

		io_uring_prep_poll_remove(sqe, (uintptr_t)request);
		sqe->user_data = (uintptr_t)request | TAG_REMOVE;
	}
}

void fz_ring_cancel_surplus(struct fz_ring *ring)
{
	struct fz_request *request;

	while ((request = ring->surplus)) {
		ring->surplus = request->next;
		if (request->more && !fz_ring_is_lost() &&
		    !fz_ring_is_forbidden(IORING_OP_POLL_REMOVE)) {
			remove_polls(ring, request, request->more);
			continue;
		}
		/* fz_ring_end() does not find polls that are still queued: submit them first. */
		if (request->more && fz_ring_queued(ring))
			fz_ring_submit(ring);
		if (request->more)
			fz_ring_end(ring, (uintptr_t)request);
		fz_ring_complete(ring, request, 0, true);
	}
}

/* Did the kernel look for the request?  Any other result comes from a filter or a lack of memory: nothing was cancelled. */
static bool is_answer(long result)
{
	return result >= 0 || result == -ENOENT || result == -EALREADY || result == -ETIME || result == -EINTR;
}

bool fz_ring_cancel(struct fz_ring *ring, struct fz_request *request, bool owned)
{
	const bool by_call = fz_ring_is_lost() || fz_ring_is_forbidden(IORING_OP_ASYNC_CANCEL);
	struct io_uring_sqe *sqe;

	/* The request itself may still be queued. */
	if (owned && FZ_UNLIKELY(by_call))
		fz_ring_submit(ring);
	if (!owned || FZ_UNLIKELY(by_call))
		return is_answer(fz_ring_end(ring, (uintptr_t)request));
	request->any = false;
	ring->in_flight++;
	request->more++;
	sqe = fz_ring_sqe(ring);
	io_uring_prep_cancel(sqe, request, FZ_UAPI_ASYNC_CANCEL_ALL);
	sqe->user_data = (uintptr_t)request | TAG_CANCEL;
	return true;
}

void fz_ring_ask_cancel(struct fz_ring *ring, struct fz_request *request)
{
	/* relaxed, both: the release below publishes what was stored. */
	struct fz_request *first = atomic_load_explicit(&ring->asked, memory_order_relaxed);

	atomic_store_explicit(&request->asked, true, memory_order_relaxed);
	do
		request->next_asked = first;
	/* release: pairs with the exchange in fz_ring_cancel_asked(). */
	while (!atomic_compare_exchange_weak_explicit(&ring->asked, &first, request, memory_order_release,
						      memory_order_relaxed));
}

void fz_ring_cancel_asked(struct fz_ring *ring)
{
	/* acquire: pairs with fz_ring_ask_cancel(). */
	struct fz_request *next, *request = atomic_exchange_explicit(&ring->asked, NULL, memory_order_acquire);

	for (; request; request = next) {
		next = request->next_asked;
		/* relaxed: only the ring's owner, which is this thread, completes the request. */
		if (atomic_load_explicit(&request->number, memory_order_relaxed) != FZ_REQUEST_DONE)
			fz_ring_cancel(ring, request, true);
		/* release: pairs with fz_ring_is_asked(): the fiber may leave, and the request is gone. */
		atomic_store_explicit(&request->asked, false, memory_order_release);
	}
}
