/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_IO_INTERNAL_H
#define FZ_RUNTIME_IO_IO_INTERNAL_H

/*
 * runtime/io/io_internal.h - what the files of runtime/io/io.h share.
 */

#include "runtime/sched/announce.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/io/op.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"
#include "runtime/base/sys.h"

#include <asm/errno.h>
#include <limits.h>
#include <sys/uio.h>

/* The kernel's MAX_RW_COUNT: more is never transferred by one call. */
#define FZ_IO_MAX ((size_t)0x7ffff000)

static inline uint32_t fz_io_clamp(size_t n)
{
	return (uint32_t)(n < FZ_IO_MAX ? n : FZ_IO_MAX);
}

/*
 * May this call on a socket wait, with flags of send and recv?  1: yes, as a fiber; 0: it never
 * waits, make the real one; -EBADF.  What is known of fd is in *ret_info unless that.
 */
int fz_io_may_wait(struct fz_fiber *self, int fd, int flags, uint32_t *ret_info);

/*
 * Is the array nothing that can wait: nothing to do, or an error?  Of several pieces
 * the kernel judges the addresses; one is handed to it as a plain buffer.
 */
static inline bool fz_io_bad_vector(const struct iovec *iov, int count)
{
	return count <= 0 || count > IOV_MAX ||
	       (count == 1 &&
		(!fz_sys_readable(&iov->iov_base) || !fz_sys_readable(&iov->iov_len)));
}

/* Where a partial transfer has come to in a caller's array. */
struct fz_io_cursor {
	const struct iovec *iov;
	int count;
	size_t skip;		/* bytes of iov[0] that are done */
};

static inline void fz_io_cursor_advance(struct fz_io_cursor *c, size_t n)
{
	while (c->count && n >= c->iov->iov_len - c->skip) {
		n -= c->iov->iov_len - c->skip;
		c->skip = 0;
		c->iov++;
		c->count--;
	}
	c->skip += n;
}

/* What is to be transferred next: all that is left, or the rest of one piece. */
static inline const struct iovec *fz_io_cursor_rest(const struct fz_io_cursor *c,
						    struct iovec *ret_part)
{
	if (!c->skip)
		return c->iov;
	ret_part->iov_base = (char *)c->iov->iov_base + c->skip;
	ret_part->iov_len = c->iov->iov_len - c->skip;
	return ret_part;
}

/*
 * Run op to its end.  timeout_error is the answer at the deadline; restart tells
 * whether the call goes on after handlers that all have SA_RESTART.  -ECANCELED
 * between fz_cancel_defer and undefer only.
 */
int64_t fz_io_run(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		  int timeout_error, bool restart);

/*
 * poll's real call, cancellable, for what the ring cannot wait for.  A handler that has run
 * since fz_signal_none_run() ends it (-EINTR).
 */
int fz_io_poll_announced(struct fz_fiber *self, struct pollfd *fds, uint64_t n,
			 fz_nsec deadline, uint32_t none_run);

/* The answer to RWF_NOWAIT: the kernel cannot try without waiting on this kind of file. */
static inline bool fz_io_cannot_try(int64_t ret)
{
	return ret == -EOPNOTSUPP || ret == -ENOSYS;
}

/*
 * Before a read that may find what others have waited for longer, whose requests the
 * kernel completes only when it is asked: now and then it is, and they go first.
 */
void fz_io_take_turns(struct fz_fiber *self);

/* Cancellation requested before the call waits for anything: act on it. */
void fz_io_test_cancel(struct fz_fiber *self);

/* Instead of fz_announce_end(), for a call that may have sent a signal; ret as of the call. */
static inline bool fz_io_announce_end(struct fz_fiber *self, int64_t ret)
{
	/* Blocked, it is pending for this kernel thread, which may be another one from now on. */
	if (FZ_UNLIKELY(ret == -EPIPE || ret == -EFBIG))
		fz_signal_collect(self, (int)ret);
	return fz_announce_end(self);
}

#endif
