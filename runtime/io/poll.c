/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/poll.c - poll: ask without waiting, then one request per descriptor
 * until the first is ready, then ask again for the answer.
 */
#include "runtime/io/io_internal.h"

#include <linux/poll.h>

#include "runtime/base/host.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/base/sys.h"
#include "runtime/sched/timer.h"

/* Beyond that the kernel's own poll costs less than so many requests. */
enum { MAX_REQUESTS = 64 };

static int poll_now(struct pollfd *fds, uint64_t n)
{
	struct __kernel_timespec none = { 0, 0 };

	return (int)fz_syscall5(__NR_ppoll, (long)fds, (long)n, (long)&none, 0, 0);
}

int fz_io_poll_announced(struct fz_fiber *self, struct pollfd *fds, uint64_t n,
			 fz_nsec deadline, uint32_t none_run)
{
	int ret;

	fz_announce(self);
	do {
		bool changed = fz_cancel_begin_call(self);

		ret = (int)fz_syscall5(__NR_ppoll, (long)fds, (long)n,
				       (long)fz_signal_limit(self, deadline, none_run), 0, 0);
		fz_cancel_end_call(self, changed);
		/* For nothing: a signal was for another thread. */
	} while (ret == -EINTR && self->sig.handlers_run == none_run);
	return ret == 0 && self->sig.handlers_run != none_run ? -EINTR : ret;
}

/*
 * A request ends when the other side has stopped sending, wanted or not, so it cannot wait for
 * anything else then.
 */
static bool half_closed(const struct pollfd *wanted, unsigned n)
{
	struct pollfd fds[MAX_REQUESTS];

	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = wanted[i].fd, .events = POLLRDHUP };
	return n && poll_now(fds, n) > 0;
}

int fz_io_ppoll(struct fz_fiber *self, struct pollfd *fds, uint64_t n, fz_nsec deadline,
		uint64_t mask)
{
	struct fz_mask_swap old;
	int ret;

	fz_io_test_cancel(self);
	ret = n ? poll_now(fds, n) : 0;
	if (ret != 0)
		return ret;
	ret = fz_signal_swap_mask(self, mask, &old) ? -EINTR : fz_io_poll(self, fds, n, deadline);
	fz_signal_unswap_mask(self, &old);
	/* As natively: what the mask has let in ends the call, whatever is ready now. */
	return ret >= 0 && self->sig.handlers_run ? -EINTR : ret;
}

int fz_io_poll(struct fz_fiber *self, struct pollfd *fds, uint64_t n, fz_nsec deadline)
{
	struct pollfd wanted[MAX_REQUESTS];
	uint32_t none_run = fz_signal_none_run(self);
	unsigned used = 0;
	int ret;

	fz_io_test_cancel(self);
	/* Judges the pointer, the count and the descriptors, too. */
	ret = poll_now(fds, n);
	if (ret != 0 || deadline == 0)
		return ret;
	for (uint64_t i = 0; i < n; i++) {
		if (fds[i].fd < 0)
			continue;
		if (used == MAX_REQUESTS)
			return fz_io_poll_announced(self, fds, n, deadline, none_run);
		wanted[used++] = fds[i];
	}
	for (;;) {
		const unsigned flags = FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL;

		int why = used ? fz_op_poll(self, wanted, used, deadline, flags) :
				 fz_op_sleep(self, deadline, flags);

		if (why == FZ_OP_SIGNAL)
			return -EINTR;
		if (why == -EINVAL)
			return fz_io_poll_announced(self, fds, n, deadline, none_run);
		if (why == FZ_OP_CANCEL) {
			fz_host.test_cancel();
			continue;
		}
		/* Somebody else may have been faster; then wait on. */
		ret = poll_now(fds, n);
		if (ret != 0 || why == FZ_OP_TIMEOUT)
			return ret;
		if (self->sig.handlers_run != none_run)
			return -EINTR;
		if (half_closed(wanted, used))
			return fz_io_poll_announced(self, fds, n, deadline, none_run);
	}
}
