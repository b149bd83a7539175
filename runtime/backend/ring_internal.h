/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_RING_INTERNAL_H
#define FZ_RUNTIME_BACKEND_RING_INTERNAL_H

/*
 * runtime/backend/ring_internal.h - what ring.c and ring_cancel.c share.  By the owner of the ring.
 */

#include "runtime/backend/ring.h"

/* The two low bits of user_data; in the address of a request they are 0. */
enum {
	TAG_REQUEST = 0,
	TAG_CANCEL = 1,		/* the answer to a cancel request */
	TAG_EVENT = 2,		/* the ring's eventfd was written */
	TAG_IGNORE = 3,
	TAG_MASK = 3,
};

static inline bool fz_ring_is_lost(void)
{
	return fz_backend_kind() == FZ_BACKEND_EPOLL;
}

/* One completion of the request, or the answer to one of its cancellations, has come. */
void fz_ring_complete(struct fz_ring *ring, struct fz_request *request, int32_t result,
		      bool is_answer);

/* fz_ring_sync_cancel() on this ring. */
void fz_ring_end(const struct fz_ring *ring, uint64_t user_data);

/* The answer to a cancellation of the request was an error. */
void fz_ring_cancel_failed(struct fz_ring *ring, const struct fz_request *request, int error);

/*
 * The request has its first completion, and that is enough: put it into ring->surplus.  The answer
 * to its cancellation counts from now on, so that the request stays until fz_ring_cancel_surplus().
 * That function queues; here a full queue would be submitted, and completions reaped, in the middle
 * of fz_ring_reap().
 */
void fz_ring_note_surplus(struct fz_ring *ring, struct fz_request *request);
void fz_ring_cancel_surplus(struct fz_ring *ring);

#endif
