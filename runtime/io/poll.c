/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/poll.c - poll: ask without waiting, then wait for one request per
 * descriptor until the first is ready and the ring has taken back the others, then ask again for the
 * answer.
 */
#include "runtime/io/io_internal.h"

#include <linux/poll.h>

#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"

/*
 * Has the peer of a descriptor stopped sending?  Then each request for that descriptor completes
 * at once, whether or not POLLRDHUP was wanted, so that the ring cannot wait for anything else.
 */
static bool half_closed(const struct fz_fiber *self, long number, const struct pollfd *wanted, unsigned n)
{
	struct pollfd fds[FZ_IO_MAX_POLLS];

	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = wanted[i].fd, .events = POLLRDHUP };
	return n && fz_io_poll_now(self, number, fds, n) > 0;
}

static int poll_alone(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
		      fz_nsec deadline)
{
	int ret;

	fz_io_yield_sometimes(self, false);
	ret = fz_io_poll_announced(self, number, fds, n, deadline);
	if (ret > 0)
		fz_io_expect_data(self, ret);
	return ret;
}

/* poll, but for fz_signal_mark(). */
static int wait_for(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
		    fz_nsec deadline)
{
	struct pollfd wanted[FZ_IO_MAX_POLLS];
	unsigned used = 0;
	int ret;

	fz_io_test_cancel(self);
	if (deadline == 0)
		fz_io_yield_sometimes(self, false);
	else if (fz_is_alone(self))
		return poll_alone(self, number, fds, n, deadline);
	/* The kernel also checks the pointer, the count and the descriptors. */
	ret = fz_io_poll_now(self, number, fds, n);
	if (ret > 0)
		fz_io_expect_data(self, ret);
	if (ret != 0 || deadline == 0)
		return ret;
	for (uint64_t i = 0; i < n; i++) {
		if (fds[i].fd < 0)
			continue;
		if (used == FZ_IO_MAX_POLLS)
			return fz_io_poll_announced(self, number, fds, n, deadline);
		wanted[used++] = fds[i];
	}
	for (;;) {
		int more = fz_io_wait_any(self, wanted, used, deadline);

		if (more == -EINTR)
			return more;
		if (more == -EINVAL)
			break;
		/* Nothing is ready any more if another thread was faster: wait again. */
		ret = fz_io_poll_now(self, number, fds, n);
		if (ret > 0)
			fz_io_expect_data(self, ret);
		if (ret != 0 || !more)
			return ret;
		if (half_closed(self, number, wanted, used))
			break;
	}
	return fz_io_poll_announced(self, number, fds, n, deadline);
}

int fz_io_poll(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
	       fz_nsec deadline)
{
	fz_signal_mark(self);
	return wait_for(self, number, fds, n, deadline);
}

int fz_io_ppoll(struct fz_fiber *self, struct pollfd *fds, uint64_t n, fz_nsec deadline,
		uint64_t mask)
{
	struct fz_mask_swap old;
	int ret;

	fz_io_test_cancel(self);
	if (deadline == 0)
		fz_io_yield_sometimes(self, false);
	fz_signal_mark(self);
	ret = n ? fz_io_poll_now(self, __NR_ppoll, fds, n) : 0;
	if (ret > 0)
		fz_io_expect_data(self, ret);
	if (ret != 0)
		return ret;
	ret = fz_signal_swap_mask(self, mask, &old) ?
		      -EINTR : wait_for(self, __NR_ppoll, fds, n, deadline);
	fz_signal_unswap_mask(self, &old);
	/*
	 * As natively: a handler that ran because of the mask ends the call with EINTR, whatever
	 * is ready now.
	 */
	return ret >= 0 && self->sig.handlers_run ? -EINTR : ret;
}
