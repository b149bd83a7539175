/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_REQUESTS_H
#define FZ_TESTS_UNIT_REQUESTS_H

/* tests/unit/requests.h - requests of the caller, a fiber, which waits for each until the deadline. */

#include <linux/io_uring.h>

#include "runtime/backend/backend.h"
#include "runtime/io/op.h"
#include "runtime_setup.h"

static inline int wait_read(int fd, void *buf, size_t n, fz_nsec deadline)
{
	struct fz_op op = {
		.opcode = IORING_OP_READ, .fd = fd, .off = (uint64_t)-1,
		.addr = (uintptr_t)buf, .len = (uint32_t)n,
	};

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

static inline int receive(int fd, void *buf, size_t n, int flags, fz_nsec deadline)
{
	struct fz_op op = {
		.opcode = IORING_OP_RECV, .fd = fd, .addr = (uintptr_t)buf,
		.len = (uint32_t)n, .op_flags = (uint32_t)flags,
	};

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

static inline int wait_ready(int fd, unsigned events, fz_nsec deadline)
{
	struct fz_op op = { .opcode = IORING_OP_POLL_ADD, .fd = fd, .op_flags = events };

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

/* Nothing of ours is left behind in any backend. */
static inline bool backends_are_idle(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++)
		if (fz_backend_in_flight(&fz_sched.processors[i].backend))
			return false;
	return true;
}

#endif
