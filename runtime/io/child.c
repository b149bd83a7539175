/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/child.c - wait for a child process, by a request on the ring.
 */
#include "runtime/io/io.h"

#include <asm/errno.h>

#include "runtime/backend/backend.h"
#include "runtime/base/uapi.h"
#include "runtime/io/wait.h"

int fz_io_await_child(struct fz_fiber *self, int type, int id, int options)
{
	const int keep = 0x1000000; /* WNOWAIT */
	struct fz_op op = {
		.opcode = FZ_UAPI_OP_WAITID,
		.fd = id,
		.len = (uint32_t)type,
		.file_index = (uint32_t)(options | keep),
	};
	int64_t ret;

	if (fz_backend_kind() != FZ_BACKEND_RING || !fz_ring_knows(FZ_UAPI_OP_WAITID))
		return 0;
	ret = fz_io_run(self, &op, FZ_FOREVER, 0, true);
	/*
	 * ECHILD may be wrong: if the kernel thread that submitted the request has ended, one of the
	 * kernel's worker threads looks for the child, among its own children
	 * (tests/programs/signal/signal_churn.c).
	 */
	if (ret == -ECHILD || ret == FZ_OP_FORBIDDEN)
		return 0;
	return ret < 0 ? (int)ret : 1;
}
