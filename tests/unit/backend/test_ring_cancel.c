/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "ring_fixture.h"

Test(ring_cancel, cancel_ends_a_poll)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_submit(&ring);
	cr_assert_eq(reap(), 0);
	fz_ring_cancel(&ring, &w.request, true);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
}

Test(ring_cancel, cancel_by_another_thread)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_submit(&ring);
	fz_ring_cancel(&ring, &w.request, false);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
}

/* As a thread does that owns no ring: it may go when the owner has taken the request, not before. */
Test(ring_cancel, the_owner_is_asked)
{
	struct waiter w = { .fiber.thread.tid = 0 }, other = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	start_nop(&other);
	fz_ring_submit(&ring);
	reap();
	cr_assert(done(&other));
	cr_assert(!fz_ring_has_asked(&ring));
	fz_ring_ask_cancel(&ring, &w.request);
	/* This one is complete: it is taken, and not cancelled. */
	fz_ring_ask_cancel(&ring, &other.request);
	cr_assert(fz_ring_has_asked(&ring));
	cr_assert(fz_ring_is_asked(&w.request));
	cr_assert(fz_ring_is_asked(&other.request));
	fz_ring_cancel_asked(&ring);
	cr_assert(!fz_ring_has_asked(&ring));
	cr_assert(!fz_ring_is_asked(&w.request));
	cr_assert(!fz_ring_is_asked(&other.request));
	cr_assert_eq(fz_ring_queued(&ring), 1);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
}

/* Completed already: the result stays, and both answers are waited for. */
Test(ring_cancel, cancel_too_late)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init();
	start_nop(&w);
	fz_ring_submit(&ring);
	fz_ring_cancel(&ring, &w.request, true);
	reap();
	cr_assert(!done(&w), "the answer to the cancel request is outstanding");
	fz_ring_submit(&ring);
	reap();
	cr_assert(done(&w));
	cr_assert_eq(w.request.result, 0);
	cr_assert_eq(ring.in_flight, 0);
}

/* Queued together: in order, so the cancel request finds it. */
Test(ring_cancel, cancel_before_submission)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_cancel(&ring, &w.request, true);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
}

/* The cancel request never reaches the kernel, which has the poll. */
Test(ring_cancel, cancel_before_the_ring_is_lost)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_submit(&ring);
	fz_ring_cancel(&ring, &w.request, true);
	SET(fz_backend_choice.kind, FZ_BACKEND_EPOLL);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
}

/*
 * A carrier that has published `published` requests, and has lost the processor: it enters the kernel after 20 ms,
 * unless that is refused by then, and leaves.
 */
struct loser {
	uint32_t published;
	bool refused;
};

static void *loses(void *arg)
{
	const struct loser *l = arg;

	nap(20 * FZ_MSEC);
	if (!l->refused)
		fz_ring_wait(&ring, l->published, FZ_FOREVER);
	SET(losers, 0);
	return NULL;
}

/* The ring is lost just then. */
static pthread_t lose_with(struct loser *l)
{
	SET(losers, 1);
	SET(fz_backend_choice.kind, FZ_BACKEND_EPOLL);
	return native(loses, l);
}

/* What it had published is the kernel's; what was queued since is dropped. */
Test(ring_cancel, lost_while_a_loser_submits)
{
	struct waiter published = { .fiber.thread.tid = 0 }, queued = { .fiber.thread.tid = 0 };
	struct loser l = { .published = 1 };
	pthread_t t;

	init();
	start_nop(&published);
	cr_assert_eq(fz_ring_publish(&ring), l.published);
	t = lose_with(&l);
	start_nop(&queued);
	fz_ring_submit(&ring);
	pthread_join(t, NULL);
	cr_assert(!done(&published));
	cr_assert(done(&queued));
	cr_assert_eq(queued.request.result, -ECANCELED);
	cr_assert(EVENTUALLY((reap(), done(&published))));
	cr_assert_eq(published.request.result, 0);
	fz_ring_submit(&ring);
	cr_assert_eq(ring.in_flight, 0);
}

/* Its call is refused: the owner drops what it had published. */
Test(ring_cancel, lost_before_a_loser_submits)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	struct loser l = { .published = 1, .refused = true };
	pthread_t t;

	init();
	start_nop(&w);
	fz_ring_publish(&ring);
	t = lose_with(&l);
	fz_ring_submit(&ring);
	cr_assert(done(&w));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(fz_ring_queued(&ring), 0);
	cr_assert_eq(ring.in_flight, 0);
	pthread_join(t, NULL);
}

/* It sleeps in the kernel, and the kick for it has been reaped before. */
Test(ring_cancel, lost_while_a_loser_sleeps)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	struct loser l = { .published = 0 };
	pthread_t t;

	init();
	kick();
	cr_assert_eq(reap(), 1);
	t = lose_with(&l);
	nap(50 * FZ_MSEC);
	start_nop(&w);
	fz_ring_publish(&ring);
	fz_ring_submit(&ring);
	cr_assert_eq(GET(losers), 0);
	cr_assert(done(&w));
	pthread_join(t, NULL);
}

/* Before it enters, all that could end its wait has been ended: it finds that, because nobody has reaped it. */
Test(ring_cancel, nothing_is_reaped_before_a_loser_has_seen_it)
{
	struct loser l = { .published = 0 };
	pthread_t t;

	init();
	t = lose_with(&l);
	fz_ring_cancel_all(&ring);
	reap();
	cr_assert_eq(GET(losers), 0);
	pthread_join(t, NULL);
}

/* A request that is not with the kernel yet is cancelled: it ends. */
Test(ring_cancel, cancel_while_a_loser_submits)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	struct loser l = { .published = 1 };
	pthread_t t;

	init_with_poll(&w);
	cr_assert_eq(fz_ring_publish(&ring), l.published);
	t = lose_with(&l);
	fz_ring_cancel(&ring, &w.request, true);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
	pthread_join(t, NULL);
}

/* Three polls that are one request, of which the first completion is enough. */
static void start_polls(struct waiter *w, int p[3][2])
{
	struct io_uring_sqe *sqe;

	init();
	w->request.more = 2;
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(pipe(p[i]), 0);
		if (i == 0) {
			sqe = start(w);
		} else {
			sqe = fz_ring_sqe(&ring);
			ring.in_flight++;
		}
		io_uring_prep_poll_add(sqe, p[i][0], POLLIN);
		fz_ring_set_request(&ring, sqe, &w->request);
	}
	w->request.any = true;
}

/* The ring takes back what is left, and wakes once, when nothing of the request is left. */
Test(ring_cancel, first_of_several_polls)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	int p[3][2];

	start_polls(&w, p);
	fz_ring_submit(&ring);
	cr_assert_eq(write(p[1][1], "", 1), 1);
	cr_assert_eq(reap(), 1);
	cr_assert(!fired(&w));
	cr_assert_eq(fz_ring_queued(&ring), 2);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert(fired(&w));
	cr_assert(w.request.ready);
	cr_assert_eq(ring.in_flight, 0);
}

/* All ready at once: nothing is left to take back. */
Test(ring_cancel, all_of_several_polls)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	int p[3][2];

	start_polls(&w, p);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(write(p[i][1], "", 1), 1);
	fz_ring_submit(&ring);
	cr_assert_eq(reap(), 3);
	cr_assert_eq(fz_ring_queued(&ring), 0);
	cr_assert(done(&w));
	cr_assert(fired(&w));
	cr_assert_eq(ring.in_flight, 0);
}

/* A deadline beside the first completion: both take back what is left. */
Test(ring_cancel, several_polls_cancelled)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	int p[3][2];

	start_polls(&w, p);
	fz_ring_submit(&ring);
	cr_assert_eq(write(p[2][1], "", 1), 1);
	cr_assert_eq(reap(), 1);
	fz_ring_cancel(&ring, &w.request, true);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert(w.request.ready);
	cr_assert_eq(ring.in_flight, 0);
}

/*
 * A refused cancellation of a request whose polls are being removed.  No filter is needed for EACCES:
 * so the kernel answers a datagram socket that connects to all hosts.
 */
Test(ring_cancel, a_refused_cancel_forbids_its_own_opcode)
{
	const struct sockaddr_in all = { .sin_family = AF_INET, .sin_port = 1,
					 .sin_addr.s_addr = INADDR_BROADCAST };
	const int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct waiter w = { .fiber.thread.tid = 0 };
	struct io_uring_sqe *sqe;
	int p[3][2];

	start_polls(&w, p);
	fz_ring_submit(&ring);
	cr_assert_eq(write(p[2][1], "", 1), 1);
	cr_assert_eq(reap(), 1);
	w.request.more++;
	ring.in_flight++;
	sqe = fz_ring_sqe(&ring);
	io_uring_prep_connect(sqe, s, (const void *)&all, sizeof(all));
	sqe->user_data = (uintptr_t)&w.request | TAG_CANCEL;
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert(fz_ring_is_forbidden(IORING_OP_ASYNC_CANCEL));
	cr_assert(!fz_ring_is_forbidden(IORING_OP_POLL_REMOVE));
	cr_assert_eq(ring.in_flight, 0);
}

/* Without the opcode, by a call. */
Test(ring_cancel, several_polls_without_poll_remove)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	int p[3][2];

	start_polls(&w, p);
	fz_ring_forbid(IORING_OP_POLL_REMOVE);
	fz_ring_submit(&ring);
	cr_assert_eq(write(p[0][1], "", 1), 1);
	cr_assert_eq(reap(), 1);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert(w.request.ready);
	cr_assert_eq(ring.in_flight, 0);
}

/* The kernel has two of the polls when the ring is lost, and never sees the third. */
Test(ring_cancel, several_polls_when_the_ring_is_lost)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	int p[3][2];

	start_polls(&w, p);
	fz_ring_publish(&ring);
	cr_assert_eq(syscall(__NR_io_uring_enter, GET(ring.fd), 2, 0, 0, NULL, 0), 2);
	SET(fz_backend_choice.kind, FZ_BACKEND_EPOLL);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert(!w.request.ready);
	cr_assert_eq(ring.in_flight, 0);
}
