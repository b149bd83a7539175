/* SPDX-License-Identifier: MIT */
#include "runtime/backend/backend.h"

#include <asm/errno.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/base/time.h"

static struct fz_backend *nth(struct fz_backend *first, uint32_t i, size_t stride)
{
	return (struct fz_backend *)(void *)((char *)first + i * stride);
}

static int init(struct fz_backend *b, const char **ret_why)
{
	const bool wants_ring = fz_backend_kind() == FZ_BACKEND_RING;
	int err = fz_epoll_init(&b->epoll, ret_why);

	b->ring.event_fd = &b->epoll.event_fd;
	b->ring.losers = &b->epoll.losers;
	if (!err && wants_ring) {
		err = fz_ring_init(&b->ring, ret_why);
		if (err)
			fz_epoll_fini(&b->epoll);
	} else if (!err) {
		fz_ring_init_none(&b->ring);
		fz_epoll_use(&b->epoll);
	}
	return err;
}

static int init_all(struct fz_backend *first, uint32_t n, size_t stride,
		    enum fz_backend_kind kind, const char **ret_why)
{
	int err = 0;

	atomic_store_explicit(&fz_backend_choice.kind, kind, memory_order_relaxed);
	for (uint32_t made = 0; made < n; made++) {
		err = init(nth(first, made, stride), ret_why);
		if (!err)
			continue;
		fz_backends_fini(first, made, stride);
		break;
	}
	if (!err)
		fz_kept_fd_fill_with(&first->epoll.event_fd);
	return err;
}

int fz_backends_init(struct fz_backend *first, uint32_t n, size_t stride,
		     enum fz_backend_kind wish, const struct fz_backend_hooks *hooks,
		     const char **ret_why)
{
	int err = 0;

	fz_backend_hooks = *hooks;
	fz_backend_choice.failed = NULL;
	if (wish != FZ_BACKEND_EPOLL &&
	    /* relaxed: as in fz_backend_avoid_ring(). */
	    !atomic_load_explicit(&fz_backend_choice.avoids_ring, memory_order_relaxed)) {
		err = init_all(first, n, stride, FZ_BACKEND_RING, ret_why);
		if (!err || wish == FZ_BACKEND_RING)
			return err;
		fz_backend_choice.failed = *ret_why;
		fz_backend_choice.error = err;
	}
	return init_all(first, n, stride, FZ_BACKEND_EPOLL, ret_why);
}

void fz_backends_fini(struct fz_backend *first, uint32_t n, size_t stride)
{
	fz_kept_fd_fill_with(NULL);
	for (uint32_t i = 0; i < n; i++) {
		struct fz_backend *b = nth(first, i, stride);

		fz_ring_fini(&b->ring);
		fz_epoll_fini(&b->epoll);
	}
}

struct fz_epoll *fz_backend_epoll(struct fz_backend *b)
{
	if (FZ_LIKELY(fz_epoll_active(&b->epoll)))
		return &b->epoll;
	fz_ring_leave(&b->ring);
	/*
	 * Requests in flight on the lost ring still complete there; let their completions end this
	 * instance's waits.
	 */
	fz_epoll_add_ring(&b->epoll,
			  atomic_load_explicit(&b->ring.fd, memory_order_relaxed));
	fz_epoll_use(&b->epoll);
	return &b->epoll;
}

void fz_backend_kick_from_ring(struct fz_backend *b)
{
	static const char why[] = "write, writev and pwritev2";
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC / 10);
	const int most = 100;

	fz_backend_lose_ring(why, -EPERM);
	/* Try again: a carrier that is about to wait has not submitted anything yet that could be cancelled. */
	for (int tries = 0; tries < most && fz_ring_cancel_all(&b->ring) <= 0; tries++)
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
}

bool fz_backend_drop(struct fz_backend *b)
{
	const uint32_t before = fz_ring_queued(&b->ring);

	fz_ring_submit(&b->ring);
	return fz_ring_queued(&b->ring) != before;
}

void fz_backend_note_left(struct fz_backend *b)
{
	fz_epoll_note_loser(&b->epoll, -1);
	/*
	 * seq_cst: pairs with drop_queued(), which drops no published request while there are losers.
	 * Such requests are left now: kick, and the owner drops them.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (FZ_UNLIKELY(fz_backend_kind() == FZ_BACKEND_EPOLL) && fz_ring_queued(&b->ring))
		fz_backend_kick(b);
}

int fz_backend_fd(const struct fz_backend *b, uint32_t i)
{
	const _Atomic int *fds[FZ_BACKEND_FDS] = {
		&b->ring.fd, &b->epoll.fd, &b->epoll.event_fd,
	};

	/* relaxed: written before there is a second thread, or by fz_backend_vacate_fd(). */
	return atomic_load_explicit(fds[i], memory_order_relaxed);
}

int fz_backend_vacate_fd(struct fz_backend *b, int fd)
{
	int err = fz_ring_vacate_fd(&b->ring, fd);

	return err ? err : fz_epoll_vacate_fd(&b->epoll, fd);
}

bool fz_backend_has_arrivals(const struct fz_backend *b)
{
	return fz_ring_has_completions(&b->ring) ||
	       (atomic_load_explicit(&b->epoll.watching, memory_order_relaxed) &&
		fz_epoll_has_arrivals(&b->epoll));
}

void fz_backend_poll(struct fz_backend *b, bool *ret_kicked)
{
	if (FZ_UNLIKELY(fz_ring_has_asked(&b->ring)))
		fz_ring_cancel_asked(&b->ring);
	if (fz_ring_queued(&b->ring))
		fz_ring_submit(&b->ring);
	else if (fz_ring_has_task_work(&b->ring))
		fz_ring_poll(&b->ring);
	if (fz_epoll_active(&b->epoll)) {
		struct fz_arrivals arrivals;

		fz_count(b->ring.counts, FZ_COUNT_enters, 1);
		fz_epoll_wait(&b->epoll, 0, &arrivals);
		fz_count(b->ring.counts, FZ_COUNT_completions, (uint64_t)arrivals.count);
		fz_epoll_deliver(&b->epoll, &arrivals, true, ret_kicked);
	}
	fz_ring_reap(&b->ring, UINT32_MAX, ret_kicked);
}
