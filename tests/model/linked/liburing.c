/* SPDX-License-Identifier: MIT */
/*
 * tests/model/linked/liburing.c - liburing's functions as the library links them, compiled with the hooks: what they
 * do to the queues is explored, too.
 */
#include "tests/model/rings.h"

#include <asm/errno.h>
#include <asm/unistd.h>

#include "arch/arch.h"
#include "runtime/backend/liburing.h"

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
	return ring_make(entries, ring, params);
}

void io_uring_queue_exit(struct io_uring *ring)
{
	fz_syscall1(__NR_close, ring->ring_fd);
}

int io_uring_register_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned n)
{
	(void)ring;
	for (unsigned i = 0; i < n && i < IORING_OP_LAST; i++)
		probe->ops[i] = (struct io_uring_probe_op){ .op = (uint8_t)i, .flags = IO_URING_OP_SUPPORTED };
	probe->last_op = IORING_OP_LAST - 1;
	probe->ops_len = IORING_OP_LAST;
	return 0;
}

int io_uring_ring_dontfork(struct io_uring *ring)
{
	(void)ring;
	return 0;
}

int io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	const unsigned tail = sq->sqe_tail;

	if (sq->sqe_head != tail) {
		sq->sqe_head = tail;
		__atomic_store_n(sq->ktail, tail, __ATOMIC_RELEASE);
	}
	if (tail == __atomic_load_n(sq->khead, __ATOMIC_RELAXED))
		return 0;
	return (int)fz_syscall6(__NR_io_uring_enter, ring->enter_ring_fd,
				tail - __atomic_load_n(sq->khead, __ATOMIC_RELAXED), 0, 0, 0, 0);
}
