/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_OP_H
#define FZ_RUNTIME_IO_OP_H

/*
 * runtime/io/op.h - one request on the ring, waited for by the calling fiber.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/io/pin.h"
#include "runtime/sched/park.h"

/* The parts of a submission that our requests use; zero means unused. */
struct fz_op {
	uint8_t opcode;			/* IORING_OP_* */
	int fd;
	uint64_t off;			/* or addr2 */
	uint64_t addr, addr3;
	uint32_t len;
	uint32_t op_flags;		/* msg_flags, rw_flags, poll32_events ... */
	uint32_t file_index;		/* options of WAITID */
	/*
	 * For a device, which has nothing to do while requests gather: submit it now, not when
	 * there is nothing else to run.
	 */
	bool prompt;
	/* Whose number or copy it names instead of fd; kept for the call when it is done. */
	struct fz_pin *pin;
};

/* Results besides the kernel's; no system call returns them. */
enum {
	FZ_OP_TIMEOUT = -1000,		/* the deadline passed */
	FZ_OP_SIGNAL = -1001,		/* a handler has run; the request had no effect */
	FZ_OP_CANCEL = -1002,		/* the thread was cancelled; likewise */
};

/* 0 or FZ_OP_*. */
static inline int fz_op_outcome(enum fz_why why)
{
	switch (why) {
	case FZ_WHY_TIMEOUT: return FZ_OP_TIMEOUT;
	case FZ_WHY_SIGNAL: return FZ_OP_SIGNAL;
	case FZ_WHY_CANCEL: return FZ_OP_CANCEL;
	default: return 0;
	}
}

/*
 * Submit and park until it is complete.  flags as in fz_wait_arm(): what else may
 * end the wait.  The request is over when this returns, so its buffers are the
 * caller's again.  What the kernel did before it could be stopped is reported
 * rather than the reason to stop.  From a fiber, outside the runtime.  Handlers
 * have run when it returns.
 */
int fz_op_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
	       unsigned flags);

/*
 * The same for n polls at once (n >= 1): until the first is ready.  Returns 1, FZ_OP_*, or
 * -EINVAL: the ring cannot wait for one of them, as in fz_io_wait_ready().
 */
struct pollfd;
int fz_op_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
	       fz_nsec deadline, unsigned flags);

/*
 * After an attempt that would have to wait; *count: how many there were, 0 at first.  Is fd ready
 * for events, but not for this call?  Waiting for readiness would spin then: a datagram to a full
 * Unix socket that is not connected; receiving where reception has been shut down.  Only the
 * real call can wait, or tell.
 */
bool fz_op_is_refused(int fd, uint32_t events, unsigned *count);

/*
 * Before descriptor fd is closed: requests that name it go to the kernel first, and
 * whoever waits for its readiness goes on with a copy; no epoll instance of ours has it
 * any more.  Any thread outside the runtime.
 */
void fz_op_flush_fd(struct fz_fiber *self, int fd);

/* After it is closed: who began to wait with it in between learns that.  Likewise. */
void fz_op_closed(struct fz_fiber *self, int fd);

/* Both for all from first to last, which may be UINT_MAX. */
void fz_op_flush_range(struct fz_fiber *self, unsigned first, unsigned last);
void fz_op_closed_range(struct fz_fiber *self, unsigned first, unsigned last);

/* fz_op_wait() and fz_op_poll() where the backend is epoll (op_ready.c), for op.c. */
int fz_op_ready_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		     unsigned flags);
int fz_op_ready_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
		     fz_nsec deadline, unsigned flags);

#endif
