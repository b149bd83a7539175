/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

static void kick(void)
{
	cr_assert_eq(eventfd_write(GET(event_fd), 1), 0);
}

static void count_submission(void)
{
	COUNT(submissions);
}

static void init(void)
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

static struct io_uring_sqe *start(struct waiter *w)
{
	struct io_uring_sqe *sqe;

	w->fiber.kind = FZ_KIND_FIBER;
	w->request.fiber = &w->fiber;
	SET(w->request.number, fz_wait_arm(&w->fiber, 0).number);
	sqe = fz_ring_sqe(&ring);
	ring.in_flight++;
	return sqe;
}

static void start_nop(struct waiter *w)
{
	struct io_uring_sqe *sqe = start(w);

	io_uring_prep_nop(sqe);
	fz_ring_set_request(&ring, sqe, &w->request);
}

static void start_poll(struct waiter *w, int fd)
{
	struct io_uring_sqe *sqe = start(w);

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	fz_ring_set_request(&ring, sqe, &w->request);
}

/* The ring, and a poll on it of a pipe in which nothing comes; not submitted. */
static void init_with_poll(struct waiter *w)
{
	int p[2];

	init();
	cr_assert_eq(pipe(p), 0);
	start_poll(w, p[0]);
}

static bool fired(struct waiter *w)
{
	return (GET(w->fiber.wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_FIRED;
}

static bool done(struct waiter *w)
{
	return GET(w->request.number) == FZ_REQUEST_DONE;
}

static uint32_t reap(void)
{
	bool kicked = false;

	fz_ring_poll(&ring);
	return fz_ring_reap(&ring, UINT32_MAX, &kicked);
}

Test(ring, completes)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	unsigned before;

	init();
	start_nop(&w);
	cr_assert_eq(fz_ring_queued(&ring), 1);
	cr_assert(!done(&w));
	before = GET(submissions);
	fz_ring_submit(&ring);
	cr_assert_eq(GET(submissions), before + 1);
	cr_assert_eq(fz_ring_queued(&ring), 0);
	cr_assert_eq(reap(), 1);
	cr_assert(done(&w));
	cr_assert(fired(&w));
	cr_assert_eq(w.request.result, 0);
	cr_assert_eq(ring.in_flight, 0);
	cr_assert(!fz_ring_has_completions(&ring));
}

/* Who reaps what another has submitted settles it first. */
Test(ring, another_owner_is_noticed)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init();
	start_nop(&w);
	fz_ring_submit(&ring);
	cr_assert_eq(w.request.user_change, ring.user_changes);
	SET(owner, 1);
	cr_assert_eq(reap(), 1);
	cr_assert(done(&w));
	cr_assert_neq(w.request.user_change, ring.user_changes);
}

/* So is one that a carrier without the processor may submit in its owner's place. */
Test(ring, submission_by_a_loser_is_noticed)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init();
	SET(losers, 1);
	start_nop(&w);
	fz_ring_publish(&ring);
	cr_assert_neq(w.request.user_change, ring.user_changes);
	fz_ring_submit(&ring);
	cr_assert_eq(reap(), 1);
	cr_assert(done(&w));
}

/* Results come through as they are. */
Test(ring, results)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	struct io_uring_sqe *sqe;
	char buf[8];
	int p[2];

	init();
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(write(p[1], "abc", 3), 3);
	sqe = start(&w);
	io_uring_prep_read(sqe, p[0], buf, sizeof(buf), (uint64_t)-1);
	fz_ring_set_request(&ring, sqe, &w.request);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, 3);
	fz_wait_disarm(&w.fiber);
	sqe = start(&w);
	io_uring_prep_read(sqe, -1, buf, sizeof(buf), (uint64_t)-1);
	fz_ring_set_request(&ring, sqe, &w.request);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -EBADF);
}

Test(ring, full_submission_queue_is_submitted)
{
	enum { N = 1000 };
	struct waiter *w;

	init();
	w = calloc(N, sizeof(*w));
	for (int i = 0; i < N; i++)
		start_nop(&w[i]);
	fz_ring_submit(&ring);
	reap();
	for (int i = 0; i < N; i++)
		cr_assert(done(&w[i]) && fired(&w[i]));
	cr_assert_eq(ring.in_flight, 0);
}

/* More completions than the queue has room for: the kernel keeps the rest. */
Test(ring, completion_queue_overflow_loses_nothing)
{
	enum { N = 40000 };
	struct waiter *w;

	init();
	w = calloc(N, sizeof(*w));
	for (int i = 0; i < N; i++)
		start_nop(&w[i]);
	fz_ring_submit(&ring);
	cr_assert(fz_ring_has_task_work(&ring), "the overflow is visible");
	cr_assert_eq(ring.in_flight, N);
	while (reap())
		continue;
	for (int i = 0; i < N; i++)
		cr_assert(done(&w[i]) && fired(&w[i]));
	cr_assert_eq(ring.in_flight, 0);
}

/* The same with requests that complete later, all at once, and the eventfd. */
Test(ring, overflow_of_polls_and_a_kick)
{
	enum { N = 12000 };
	struct waiter *w;
	bool kicked = false;
	int p[2];

	init();
	cr_assert_eq(pipe(p), 0);
	w = calloc(N, sizeof(*w));
	for (int i = 0; i < N; i++)
		start_poll(&w[i], p[0]);
	fz_ring_submit(&ring);
	cr_assert_eq(reap(), 0);
	cr_assert_eq(write(p[1], "", 1), 1);
	kick();
	for (int i = 0; i < 10; i++) {
		fz_ring_poll(&ring);
		fz_ring_reap(&ring, UINT32_MAX, &kicked);
	}
	for (int i = 0; i < N; i++)
		cr_assert(done(&w[i]) && fired(&w[i]));
	cr_assert(kicked);
	/* And kicks go on working, armed again as before each wait. */
	fz_ring_arm_event(&ring, (int)syscall(__NR_gettid));
	fz_ring_submit(&ring);
	for (int i = 0; i < 5; i++) {
		/* At most one old event may be left. */
		fz_ring_poll(&ring);
		fz_ring_reap(&ring, UINT32_MAX, &kicked);
		fz_ring_submit(&ring);
	}
	kicked = false;
	kick();
	fz_ring_wait(&ring, fz_ring_publish(&ring), now_ns() + 5 * FZ_SEC);
	fz_ring_reap(&ring, UINT32_MAX, &kicked);
	cr_assert(kicked);
}

Test(ring, cancel_ends_a_poll)
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

Test(ring, cancel_by_another_thread)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_submit(&ring);
	fz_ring_cancel(&ring, &w.request, false);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
	cr_assert_eq(ring.in_flight, 0);
}

/* Completed already: the result stays, and both answers are waited for. */
Test(ring, cancel_too_late)
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
Test(ring, cancel_before_submission)
{
	struct waiter w = { .fiber.thread.tid = 0 };

	init_with_poll(&w);
	fz_ring_cancel(&ring, &w.request, true);
	fz_ring_submit(&ring);
	cr_assert(EVENTUALLY((reap(), done(&w))));
	cr_assert_eq(w.request.result, -ECANCELED);
}

/* The cancel request never reaches the kernel, which has the poll. */
Test(ring, cancel_before_the_ring_is_lost)
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
Test(ring, lost_while_a_loser_submits)
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
Test(ring, lost_before_a_loser_submits)
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
Test(ring, lost_while_a_loser_sleeps)
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
Test(ring, nothing_is_reaped_before_a_loser_has_seen_it)
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
Test(ring, cancel_while_a_loser_submits)
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
Test(ring, first_of_several_polls)
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
Test(ring, all_of_several_polls)
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
Test(ring, several_polls_cancelled)
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
Test(ring, a_refused_cancel_forbids_its_own_opcode)
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
Test(ring, several_polls_without_poll_remove)
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
Test(ring, several_polls_when_the_ring_is_lost)
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

static void *kick_soon(void *arg)
{
	nap((uintptr_t)arg);
	kick();
	return NULL;
}

Test(ring, kick_ends_a_wait)
{
	init();
	for (int i = 0; i < 20; i++) {
		bool kicked = false;
		pthread_t t = native(kick_soon, (void *)(uintptr_t)(i % 4 * FZ_MSEC));

		fz_ring_wait(&ring, fz_ring_publish(&ring), FZ_FOREVER);
		pthread_join(t, NULL);
		fz_ring_poll(&ring);
		fz_ring_reap(&ring, UINT32_MAX, &kicked);
		cr_assert(kicked);
	}
	/* Before the wait: it does not sleep. */
	kick();
	fz_ring_wait(&ring, fz_ring_publish(&ring), FZ_FOREVER);
}

static int released[2], rearmed[2];

/*
 * Arm the event, and make no way for its report: the kernel wakes no thread that waits for its
 * vfork child.
 */
static void *arm_and_sleep_deeply(void *arg)
{
	char byte;

	(void)arg;
	fz_ring_arm_event(&ring, (int)syscall(__NR_gettid));
	fz_ring_submit(&ring);
	if (vfork() == 0) {
		kick();
		/* The report is on its way.  Go on when the event has been armed anew. */
		if (write(released[1], "", 1) != 1 || read(rearmed[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	/* The kernel forgets the polls of a thread that has ended. */
	cr_assert_eq(write(released[1], "", 1), 1);
	cr_assert_eq(read(rearmed[0], &byte, 1), 1);
	return NULL;
}

/* How many completions does one kick cause? */
static uint32_t reports_of_a_kick(void)
{
	bool kicked = false;

	fz_ring_arm_event(&ring, (int)syscall(__NR_gettid));
	fz_ring_submit(&ring);
	fz_ring_poll(&ring);
	fz_ring_reap(&ring, UINT32_MAX, &kicked);
	kick();
	fz_ring_poll(&ring);
	return fz_ring_reap(&ring, UINT32_MAX, &kicked);
}

static bool each_kick_is_reported_once(void)
{
	enum { KICKS = 20 };
	uint32_t reports = 0;

	for (int i = 0; i < KICKS; i++)
		reports += reports_of_a_kick();
	return reports == KICKS;
}

/*
 * A poll that could not be removed is removed when its next report tells of it; not yet, if one more
 * report is on its way then.
 */
Test(ring, an_event_armed_before_is_removed_in_the_end)
{
	pthread_t t;
	char byte;

	init();
	cr_assert_eq(pipe(released), 0);
	cr_assert_eq(pipe(rearmed), 0);
	t = native(arm_and_sleep_deeply, NULL);
	cr_assert_eq(read(released[0], &byte, 1), 1);
	fz_ring_arm_event(&ring, (int)syscall(__NR_gettid));
	fz_ring_submit(&ring);
	cr_assert_eq(write(rearmed[1], "", 1), 1);
	cr_assert_eq(read(released[0], &byte, 1), 1);
	cr_assert(EVENTUALLY(each_kick_is_reported_once()));
	cr_assert_eq(write(rearmed[1], "", 1), 1);
	pthread_join(t, NULL);
}

Test(ring, wait_ends_at_its_deadline)
{
	fz_nsec start;

	init();
	start = now_ns();
	fz_ring_wait(&ring, fz_ring_publish(&ring), start + 20 * FZ_MSEC);
	cr_assert_geq(now_ns() - start, 20 * FZ_MSEC);
	/* One that has passed: there is nothing else that could end it. */
	fz_ring_wait(&ring, fz_ring_publish(&ring), now_ns() - FZ_SEC);
}

/* ---- descriptors --------------------------------------------------------- */

static int ring_fd(void)
{
	return GET(ring.fd);
}

static void works(void)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	bool kicked = false;

	start_nop(&w);
	fz_ring_submit(&ring);
	kick();
	fz_ring_wait(&ring, fz_ring_publish(&ring), now_ns() + 5 * FZ_SEC);
	fz_ring_poll(&ring);
	fz_ring_reap(&ring, UINT32_MAX, &kicked);
	cr_assert(done(&w));
	cr_assert(kicked);
}

Test(ring, descriptors_are_high_and_close_on_exec)
{
	struct rlimit limit, after;
	int fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max > 4096)
		limit.rlim_cur = 1024;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	fd = ring_fd();
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	if (limit.rlim_max > 4096)
		cr_assert_geq(fd, 1024);
	else
		cr_assert_geq(fd, (int)limit.rlim_cur - 64);
	getrlimit(RLIMIT_NOFILE, &after);
	cr_assert_eq(after.rlim_cur, limit.rlim_cur);
	cr_assert_eq(after.rlim_max, limit.rlim_max);
	works();
}

Test(ring, hard_limit_leaves_no_room_above)
{
	struct rlimit limit = { 256, 256 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	cr_assert(ring_fd() >= 192 && ring_fd() < 256);
	works();
}

Test(ring, tiny_limit)
{
	struct rlimit limit = { 32, 32 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	works();
}

Test(ring, makes_way_for_the_program)
{
	int old;

	init();
	old = ring_fd();
	cr_assert_eq(fz_ring_vacate_fd(&ring, 0), 0);
	cr_assert_eq(ring_fd(), old);
	cr_assert_eq(fz_ring_vacate_fd(&ring, old), 0);
	cr_assert_neq(ring_fd(), old);
	cr_assert_eq(dup2(2, old), old);
	cr_assert_eq(fcntl(ring_fd(), F_GETFD), FD_CLOEXEC);
	works();
}

Test(ring, init_fails_cleanly_without_descriptors)
{
	int before = dup(0), after;
	struct rlimit limit;
	const char *why = NULL;

	close(before);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)before;
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_assert_eq(fz_ring_init(&ring, &why), -EMFILE);
	cr_assert_not_null(why);
	limit.rlim_cur++;
	setrlimit(RLIMIT_NOFILE, &limit);
	after = dup(0);
	cr_assert_eq(after, before, "a descriptor leaked");
}

/* ---- a kernel that has no memory for requests just now ------------------- */

/*
 * io_uring_enter is made to answer -EAGAIN a few times, by a seccomp listener.
 * What was queued must reach the kernel all the same.
 */
static int listener;
static _Atomic unsigned refused;

enum { REFUSALS = 3, MARK = 13 };

static void *refuse(void *arg)
{
	struct seccomp_notif request;
	struct seccomp_notif_resp answer;

	(void)arg;
	for (;;) {
		memset(&request, 0, sizeof(request));
		memset(&answer, 0, sizeof(answer));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
			return NULL;
		answer.id = request.id;
		if (GET(refused) < REFUSALS) {
			COUNT(refused);
			answer.error = -EAGAIN;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static bool filter_submissions(void)
{
	/* Of io_uring_enter those that submit exactly MARK requests. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_enter, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return listener >= 0;
}

Test(ring, refused_submission_is_repeated)
{
	struct waiter w[MARK];

	memset(w, 0, sizeof(w));
	init();
	if (!filter_submissions())
		cr_skip_test("no seccomp listener");
	native(refuse, NULL);
	for (int i = 0; i < MARK; i++)
		start_nop(&w[i]);
	fz_ring_submit(&ring);
	cr_assert_eq(GET(refused), REFUSALS);
	reap();
	for (int i = 0; i < MARK; i++)
		cr_assert(done(&w[i]), "request %d never reached the kernel", i);
}
