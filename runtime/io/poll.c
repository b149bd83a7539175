/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/poll.c - poll and ppoll, and how poll and select wait: ask without waiting; make one
 * request per descriptor, and wait until one is ready and the others are cancelled; then ask again
 * for the answer.
 */
#include "runtime/io/io_internal.h"

#include <linux/poll.h>

#include "runtime/base/host.h"
#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"

bool fz_io_want(struct fz_io_many *m, int fd, short events)
{
	if (m->count == FZ_IO_MAX_POLLS)
		return false;
	m->wanted[m->count++] = (struct pollfd){ .fd = fd, .events = events };
	return true;
}

/*
 * Returns 1 if a descriptor may be ready, 0 at the deadline, -EINTR after a handler, or another error
 * if only the real call can wait for one of the descriptors.
 */
static int wait_any(struct fz_fiber *self, const struct fz_io_many *m, fz_nsec deadline)
{
	const unsigned flags = FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL;

	for (;;) {
		int ret = m->count ? fz_op_poll(self, m->wanted, m->count, deadline, flags) :
				     fz_op_outcome(fz_sleep(self, FZ_FOR_TIME, deadline, flags));

		switch (ret) {
		case FZ_OP_TIMEOUT:
			return 0;
		case FZ_OP_SIGNAL:
			return -EINTR;
		case FZ_OP_CANCEL:
			fz_host.test_cancel();
			continue;
		default:
			return ret;
		}
	}
}

/*
 * Call this if no event is ready that the program asked for.  Has a peer stopped sending or hung up, or
 * is there an error?  Then each request for that descriptor completes at once, even if the program has
 * not asked for these events: requests cannot wait for another event.  Also true if a filter forbids to
 * ask.
 */
static bool hangs_up(const struct fz_fiber *self, const struct fz_io_many *m)
{
	struct pollfd fds[FZ_IO_MAX_POLLS];

	for (unsigned i = 0; i < m->count; i++)
		fds[i] = (struct pollfd){ .fd = m->wanted[i].fd, .events = POLLRDHUP };
	return m->count && fz_io_poll_now(self, m->poll_number, fds, m->count) != 0;
}

/* A function of its own, so that a call that need not wait has no room for wanted[] on its stack. */
static __attribute__((noinline)) int wait_on(struct fz_fiber *self, struct fz_io_many *m,
					     fz_nsec deadline)
{
	struct pollfd wanted[FZ_IO_MAX_POLLS];
	int ret, more;

	m->wanted = wanted;
	if (!m->gather(m))
		return m->announced(self, m, deadline);
	do {
		more = wait_any(self, m, deadline);
		if (more == -EINTR)
			return more;
		if (more < 0)
			break;
		/* Nothing is ready any more if another thread was faster: wait again. */
		ret = m->look(self, m);
		if (ret != 0 || !more)
			return ret;
	} while (!hangs_up(self, m));
	return m->announced(self, m, deadline);
}

/* looked: look() has just found nothing ready. */
static inline __attribute__((always_inline)) int
wait_many(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline, bool looked)
{
	int ret;

	fz_io_test_cancel(self);
	if (deadline == 0) {
		fz_io_yield_sometimes(self, false);
	} else if (m->once || fz_is_alone(self)) {
		fz_io_yield_sometimes(self, false);
		return m->announced(self, m, deadline);
	}
	/* look() also has the kernel check the pointers, the count and the descriptors. */
	ret = looked ? 0 : m->look(self, m);
	return ret != 0 || deadline == 0 ? ret : wait_on(self, m, deadline);
}

static __attribute__((noinline)) int wait_masked(struct fz_fiber *self, struct fz_io_many *m,
						 fz_nsec deadline, uint64_t mask)
{
	struct fz_mask_swap old;
	int ret;

	fz_io_test_cancel(self);
	if (deadline == 0)
		fz_io_yield_sometimes(self, false);
	ret = m->once ? 0 : m->look(self, m);
	if (ret != 0)
		return ret;
	ret = fz_signal_swap_mask(self, mask, &old) ? -EINTR :
						      wait_many(self, m, deadline, !m->once);
	fz_signal_unswap_mask(self, &old);
	/*
	 * As natively: a handler that ran because of the mask ends the call with EINTR, whatever
	 * is ready now.
	 */
	return ret >= 0 && self->sig.handlers_run ? -EINTR : ret;
}

/* Inline, so that poll, which is often ready at once, looks by a direct call. */
static inline __attribute__((always_inline)) int
wait_inline(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline, const uint64_t *mask)
{
	int ret;

	fz_signal_mark(self);
	ret = mask ? wait_masked(self, m, deadline, *mask) : wait_many(self, m, deadline, false);
	if (ret > 0)
		fz_io_expect_data(self, ret);
	return ret;
}

int fz_io_wait_many(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline,
		    const uint64_t *mask)
{
	return wait_inline(self, m, deadline, mask);
}

/* ---- poll --------------------------------------------------------------- */

struct polled {
	struct fz_io_many many;
	struct pollfd *fds;
	uint64_t n;
};

static int look(struct fz_fiber *self, struct fz_io_many *m)
{
	const struct polled *p = fz_container_of(m, struct polled, many);

	return fz_io_poll_now(self, m->poll_number, p->fds, p->n);
}

static int announced(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline)
{
	const struct polled *p = fz_container_of(m, struct polled, many);

	return fz_io_poll_announced(self, m->poll_number, p->fds, p->n, deadline);
}

static bool gather(struct fz_io_many *m)
{
	const struct polled *p = fz_container_of(m, struct polled, many);

	for (const struct pollfd *f = p->fds; f < p->fds + p->n; f++)
		if (f->fd >= 0 && !fz_io_want(m, f->fd, f->events))
			return false;
	return true;
}

int fz_io_poll(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
	       fz_nsec deadline, const uint64_t *mask)
{
	struct polled p = { { look, announced, gather, .poll_number = number }, fds, n };

	return wait_inline(self, &p.many, deadline, mask);
}
