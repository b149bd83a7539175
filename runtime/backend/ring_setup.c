/* SPDX-License-Identifier: MIT */
/*
 * runtime/backend/ring_setup.c - make a ring, move its descriptor, close it; and find out which
 * opcodes the kernel's io_uring knows.
 */
#include "runtime/backend/ring.h"

#include <errno.h>

#include "runtime/backend/liburing.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/uapi.h"

/*
 * io_uring_setup clears the memory of each ring: CQ_ENTRIES completions are 32 KB.  Completions that
 * find no room there wait in a list in the kernel (IORING_FEAT_NODROP).
 */
enum {
	SQ_ENTRIES = 256,
	CQ_ENTRIES = 2048,
};

static const uint8_t needed_ops[] = {
	IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL, IORING_OP_ACCEPT,
	IORING_OP_CONNECT, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READV,
	IORING_OP_WRITEV, IORING_OP_SEND, IORING_OP_RECV, IORING_OP_SENDMSG,
	IORING_OP_RECVMSG,
};

/* One bit for each opcode that the kernel knows.  Each fz_ring_init() writes the same value. */
static uint64_t known_ops[4];

bool fz_ring_knows(uint8_t opcode)
{
	return known_ops[opcode / 64] >> opcode % 64 & 1;
}

static int probe_ops(struct io_uring *uring)
{
	_Alignas(struct io_uring_probe) char
		room[sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op)];
	struct io_uring_probe *probe = (void *)room;
	int err;

	__builtin_memset(room, 0, sizeof(room));
	err = io_uring_register_probe(uring, probe, 256);
	if (err < 0)
		return err;
	for (size_t i = 0; i < sizeof(needed_ops); i++)
		if (!io_uring_opcode_supported(probe, needed_ops[i]))
			return -ENOSYS;
	for (unsigned op = 0; op < 256; op++)
		if (io_uring_opcode_supported(probe, (int)op))
			known_ops[op / 64] |= (uint64_t)1 << op % 64;
	return 0;
}

static void set_fd(struct fz_ring *ring, int fd)
{
	ring->uring.ring_fd = fd;
	ring->uring.enter_ring_fd = fd;
	/* relaxed: the old and the new number name one ring until the old one is closed. */
	atomic_store_explicit(&ring->fd, fd, memory_order_relaxed);
}

int fz_ring_init(struct fz_ring *ring, const char **ret_why)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
		.cq_entries = CQ_ENTRIES,
	};
	const uint32_t features = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG |
				  IORING_FEAT_FAST_POLL | IORING_FEAT_SUBMIT_STABLE |
				  IORING_FEAT_SINGLE_MMAP | IORING_FEAT_RW_CUR_POS;
	long err;

	*ret_why = "io_uring_setup";
	err = FZ_FAULT(ring_setup) ? -ENOMEM :
		io_uring_queue_init_params(SQ_ENTRIES, &ring->uring, &params);
	if (err < 0 && err != -EINVAL)
		return (int)err;
	*ret_why = "this kernel's io_uring is too old (6.0 or newer is needed)";
	/* EINVAL: the kernel does not know all of the flags. */
	if (err)
		return -ENOSYS;
	err = -ENOSYS;
	if ((params.features & features) != features)
		goto out_exit;
	ring->wait_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	/* Else the kernel counts a carrier that waits as waiting for a disk, as long as a request of its own is in flight. */
	if (params.features & FZ_UAPI_FEAT_NO_IOWAIT && fz_feature_allowed(FZ_FEATURE_NO_IOWAIT))
		ring->wait_flags |= FZ_UAPI_ENTER_NO_IOWAIT;
	err = probe_ops(&ring->uring);
	if (err < 0)
		goto out_exit;
	/* Nothing is in flight: the call does nothing, or answers EINVAL if it is unknown. */
	if (!fz_feature_allowed(FZ_FEATURE_SYNC_CANCEL) ||
	    fz_ring_sync_cancel(ring->uring.ring_fd, 0) == -EINVAL) {
		err = -ENOSYS;
		goto out_exit;
	}
	set_fd(ring, fz_own_fd_raise(ring->uring.ring_fd));
	fz_count_total(FZ_TOTAL_ring_bytes,
		       (int64_t)(ring->uring.sq.ring_sz + params.sq_entries * sizeof(struct io_uring_sqe)));
	/* A fork's child must not share the memory of the ring. */
	io_uring_ring_dontfork(&ring->uring);
	return 0;
out_exit:
	io_uring_queue_exit(&ring->uring);
	return (int)err;
}

void fz_ring_init_none(struct fz_ring *ring)
{
	static unsigned zero;
	const _Atomic uintptr_t *owner = ring->owner;
	const _Atomic int *event_fd = ring->event_fd, *losers = ring->losers;
	struct fz_processor_counts *counts = ring->counts;

	__builtin_memset(ring, 0, sizeof(*ring));
	/* An epoll instance's events share system calls, however many there are. */
	atomic_store_explicit(&ring->batch, 2 * FZ_RING_BATCH, memory_order_relaxed);
	ring->counts = counts;
	ring->owner = owner;
	ring->event_fd = event_fd;
	ring->losers = losers;
	ring->uring.sq.khead = ring->uring.sq.kflags = &zero;
	ring->uring.cq.khead = ring->uring.cq.ktail = &zero;
	atomic_store_explicit(&ring->fd, -1, memory_order_relaxed);
}

void fz_ring_fini(struct fz_ring *ring)
{
	if (atomic_load_explicit(&ring->fd, memory_order_relaxed) < 0)
		return;
	fz_own_fd_close(atomic_load_explicit(&ring->fd, memory_order_relaxed));
}

int fz_ring_vacate_fd(struct fz_ring *ring, int fd)
{
	int copy;

	if (atomic_load_explicit(&ring->fd, memory_order_relaxed) != fd)
		return 0;
	copy = fz_own_fd_elsewhere(fd);
	if (copy < 0)
		return copy;
	set_fd(ring, copy);
	return 0;
}
