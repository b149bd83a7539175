/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_RING_INTERNAL_H
#define FZ_RUNTIME_BACKEND_RING_INTERNAL_H

/*
 * runtime/backend/ring_internal.h - what ring.c and ring_cancel.c share.  By the owner of the ring.
 */

#include "runtime/backend/ring.h"

/* The low bits of user_data say what a completion is for.  They are 0 in the address of a request. */
enum {
	TAG_REQUEST = 0,
	TAG_CANCEL = 1,		/* the answer to a request's cancellation: ASYNC_CANCEL */
	TAG_REMOVE = 2,		/* the answer to the removal of one of a request's polls: POLL_REMOVE */
	TAG_EVENT = 3,		/* the ring's eventfd was written */
	TAG_IGNORE = 4,
	TAG_MASK = 7,
	TAG_BITS = 3,
};
_Static_assert(_Alignof(struct fz_request) > TAG_MASK, "addresses of requests have room for a tag");

static inline bool fz_ring_tag_is_answer(uint64_t user_data)
{
	return (user_data & TAG_MASK) == TAG_CANCEL || (user_data & TAG_MASK) == TAG_REMOVE;
}

static inline bool fz_ring_is_lost(void)
{
	return fz_backend_kind() == FZ_BACKEND_EPOLL;
}

/* One completion of the request, or the answer to one of its cancellations, has come. */
void fz_ring_complete(struct fz_ring *ring, struct fz_request *request, int32_t result,
		      bool is_answer);

/* fz_ring_sync_cancel() on this ring. */
long fz_ring_end(const struct fz_ring *ring, uint64_t user_data);

/* An answer to a cancellation or removal of the request was an error. */
void fz_ring_cancel_failed(struct fz_ring *ring, uint64_t user_data, int error);

/*
 * The request has its first completion, and that is enough: put it into ring->surplus.  The answer to
 * its cancellation is counted now, so that the request is not complete before fz_ring_cancel_surplus(),
 * which queues the cancellation.  If that were queued here, in the middle of fz_ring_reap(), a full
 * queue would be submitted and other completions reaped.
 */
void fz_ring_note_surplus(struct fz_ring *ring, struct fz_request *request);
void fz_ring_cancel_surplus(struct fz_ring *ring);

#endif
