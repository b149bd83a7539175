/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring_fixture.h"
#include "runtime/base/features.h"
#include "runtime/base/uapi.h"

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

/* Submit n requests by each of `times` system calls. */
static void submit_together(unsigned n, unsigned times)
{
	while (times--) {
		struct waiter w[8] = { 0 };

		cr_assert_leq(n, 8);
		for (unsigned i = 0; i < n; i++)
			start_nop(&w[i]);
		fz_ring_submit(&ring);
		cr_assert_eq(reap(), n);
	}
}

/* The mean of late counts, so it follows a change, and one call more or less changes nothing. */
Test(ring, knows_whether_requests_share_calls)
{
	init();
	cr_assert(!fz_ring_shares_calls(&ring));
	submit_together(4, 20);
	cr_assert(fz_ring_shares_calls(&ring));
	submit_together(1, 1);
	cr_assert(fz_ring_shares_calls(&ring));
	submit_together(1, 40);
	cr_assert(!fz_ring_shares_calls(&ring));
	submit_together(4, 1);
	cr_assert(!fz_ring_shares_calls(&ring));
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

/* The queue overflows with requests that complete later, all at once, and the eventfd. */
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

/* Have a filter refuse each wait on a ring that counts as a wait for I/O, or each that does not. */
static void refuse_waits(bool that_count)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_enter, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FZ_UAPI_ENTER_NO_IOWAIT, that_count, !that_count),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	/* A wait that is refused loses the ring. */
	SET(fz_backend_choice.kind, FZ_BACKEND_RING);
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void wait_for_a_kick(void)
{
	bool kicked = false;

	kick();
	fz_ring_wait(&ring, fz_ring_publish(&ring), FZ_FOREVER);
	cr_assert_neq(fz_backend_kind(), FZ_BACKEND_EPOLL, "the wait was refused");
	fz_ring_reap(&ring, UINT32_MAX, &kicked);
	cr_assert(kicked);
}

Test(ring, wait_is_no_wait_for_io)
{
	init();
	if (!(ring.uring.features & FZ_UAPI_FEAT_NO_IOWAIT))
		cr_skip_test("Linux before 6.15");
	refuse_waits(true);
	wait_for_a_kick();
}

Test(ring, wait_as_on_an_older_kernel)
{
	fz_features_without = 1 << FZ_FEATURE_NO_IOWAIT;
	init();
	refuse_waits(false);
	wait_for_a_kick();
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
