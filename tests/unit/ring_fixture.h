/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_RING_FIXTURE_H
#define FZ_TESTS_UNIT_RING_FIXTURE_H

/* tests/unit/ring_fixture.h - a ring without a processor, and fibers without a stack that wait for its requests. */

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/backend/hooks.h"
#include "runtime/backend/liburing.h"
#include "runtime/backend/ring_internal.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

static struct fz_ring ring;
static _Atomic uintptr_t owner;
static _Atomic unsigned submissions;

/* A ring has no eventfd of its own. */
static _Atomic int event_fd;
static _Atomic int losers;

static inline void kick(void)
{
	cr_assert_eq(eventfd_write(GET(event_fd), 1), 0);
}

static inline void count_submission(void)
{
	COUNT(submissions);
}

static inline void init(void)
{
	const char *why = "";
	int err;

	setup_layout();
	fz_backend_hooks = (struct fz_backend_hooks){ fz_wake_done, count_submission };
	ring.owner = &owner;
	ring.counts = &fz_counters->processor[0];
	SET(event_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	ring.event_fd = &event_fd;
	ring.losers = &losers;
	err = fz_ring_init(&ring, &why);
	cr_assert_eq(err, 0, "%s: %s", why, strerror(-err));
	fz_ring_arm_event(&ring, (int)syscall(__NR_gettid));
	fz_ring_submit(&ring);
}

/* A fiber without a stack waits for a request: completion fires its wait. */
struct waiter {
	struct fz_fiber fiber;
	struct fz_request request;
};

static inline struct io_uring_sqe *start(struct waiter *w)
{
	struct io_uring_sqe *sqe;

	w->fiber.kind = FZ_KIND_FIBER;
	w->request.fiber = &w->fiber;
	SET(w->request.number, fz_wait_arm(&w->fiber, 0).number);
	sqe = fz_ring_sqe(&ring);
	ring.in_flight++;
	return sqe;
}

static inline void start_nop(struct waiter *w)
{
	struct io_uring_sqe *sqe = start(w);

	io_uring_prep_nop(sqe);
	fz_ring_set_request(&ring, sqe, &w->request);
}

static inline void start_poll(struct waiter *w, int fd)
{
	struct io_uring_sqe *sqe = start(w);

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	fz_ring_set_request(&ring, sqe, &w->request);
}

/* The ring, and a poll on it of a pipe in which nothing comes; not submitted. */
static inline void init_with_poll(struct waiter *w)
{
	int p[2];

	init();
	cr_assert_eq(pipe(p), 0);
	start_poll(w, p[0]);
}

static inline bool fired(struct waiter *w)
{
	return (GET(w->fiber.wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_FIRED;
}

static inline bool done(struct waiter *w)
{
	return GET(w->request.number) == FZ_REQUEST_DONE;
}

static inline uint32_t reap(void)
{
	bool kicked = false;

	fz_ring_poll(&ring);
	return fz_ring_reap(&ring, UINT32_MAX, &kicked);
}

#endif
