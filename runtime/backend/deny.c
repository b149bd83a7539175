/* SPDX-License-Identifier: MIT */
#include "runtime/backend/deny.h"

#include <errno.h>

#include "runtime/backend/liburing.h"
#include "runtime/backend/ring.h"
#include "runtime/base/fault.h"
#include "runtime/base/uapi.h"

#ifdef FZ_FAULTS
static bool fires(uint8_t opcode)
{
	switch (opcode) {
	case IORING_OP_ACCEPT: return FZ_FAULT(deny_accept);
	case IORING_OP_ASYNC_CANCEL: return FZ_FAULT(deny_async_cancel);
	case IORING_OP_CONNECT: return FZ_FAULT(deny_connect);
	case IORING_OP_POLL_ADD: return FZ_FAULT(deny_poll_add);
	case IORING_OP_POLL_REMOVE: return FZ_FAULT(deny_poll_remove);
	case IORING_OP_READ: return FZ_FAULT(deny_read);
	case IORING_OP_READV: return FZ_FAULT(deny_readv);
	case IORING_OP_RECV: return FZ_FAULT(deny_recv);
	case IORING_OP_RECVMSG: return FZ_FAULT(deny_recvmsg);
	case IORING_OP_SEND: return FZ_FAULT(deny_send);
	case IORING_OP_WRITE: return FZ_FAULT(deny_write);
	case IORING_OP_WRITEV: return FZ_FAULT(deny_writev);
	case FZ_UAPI_OP_WAITID: return FZ_FAULT(deny_waitid);
	case FZ_UAPI_OP_FUTEX_WAIT: return FZ_FAULT(deny_futex_wait);
	default: return false;
	}
}

void fz_deny_queued(struct fz_ring *ring)
{
	const struct io_uring_sq *sq = &ring->uring.sq;

	for (unsigned i = *sq->khead; i != sq->sqe_tail; i++) {
		struct io_uring_sqe *sqe = &sq->sqes[i & sq->ring_mask];

		if (!fires(sqe->opcode))
			continue;
		sqe->opcode = IORING_OP_NOP;
		sqe->rw_flags = FZ_UAPI_NOP_INJECT_RESULT;
		sqe->len = (uint32_t)-EACCES;
	}
}
#endif
