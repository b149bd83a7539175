/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/fiber/wire.h"
#include "runtime/io/op.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

static int wait_read(int fd, void *buf, size_t n, fz_nsec deadline)
{
	struct fz_op op = {
		.opcode = IORING_OP_READ, .fd = fd, .off = (uint64_t)-1,
		.addr = (uintptr_t)buf, .len = (uint32_t)n,
	};

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

static int wait_poll(int fd, fz_nsec deadline)
{
	struct fz_op op = { .opcode = IORING_OP_POLL_ADD, .fd = fd, .op_flags = POLLIN };

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

/* Nothing of ours is left behind in any backend. */
static bool backends_are_idle(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++)
		if (fz_backend_in_flight(&fz_sched.processors[i].backend))
			return false;
	return true;
}

Test(op, sleeps_as_long_as_asked)
{
	const fz_nsec lengths[] = { 0, 1, FZ_USEC, 100 * FZ_USEC, FZ_MSEC, 30 * FZ_MSEC };

	setup_start(1);
	for (size_t i = 0; i < 6; i++) {
		fz_nsec start = now_ns();

		cr_assert_eq(fz_sleep(fz_self(), FZ_FOR_TIME, start + lengths[i], 0), FZ_WHY_TIMEOUT);
		cr_assert_geq(now_ns() - start, lengths[i]);
	}
	cr_assert_eq(fz_sleep(fz_self(), FZ_FOR_TIME, 1, 0), FZ_WHY_TIMEOUT);
}

Test(op, results_and_errors)
{
	char buf[16];
	int p[2];

	setup_start(1);
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(write(p[1], "hello", 5), 5);
	cr_assert_eq(wait_read(p[0], buf, 3, FZ_FOREVER), 3);
	cr_assert_eq(wait_read(p[0], buf, 16, FZ_FOREVER), 2, "short");
	cr_assert_eq(wait_read(-1, buf, 16, FZ_FOREVER), -EBADF);
	cr_assert_eq(write(p[1], "x", 1), 1);
	cr_assert_eq(wait_read(p[0], (void *)8, 1, FZ_FOREVER), -EFAULT);
	close(p[1]);
	/* What was not delivered is still there, or gone; then the end. */
	while (wait_read(p[0], buf, 16, FZ_FOREVER) == 1)
		continue;
	cr_assert_eq(wait_read(p[0], buf, 16, FZ_FOREVER), 0);
	cr_assert(backends_are_idle());
}

static void *read_one(void *arg)
{
	int fd = (int)(uintptr_t)arg;
	char c = 0;

	return (void *)(intptr_t)(wait_read(fd, &c, 1, FZ_FOREVER) == 1 ? c : -1);
}

Test(op, many_fibers_wait_at_once)
{
	enum { N = 300 };
	struct fz_fiber *f[N];
	int s[N][2];

	setup_start(2);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]), 0);
		f[i] = spawn_with(read_one, (void *)(uintptr_t)s[i][0], 65536, false);
	}
	for (int i = N; i-- > 0;) {
		char c = (char)(i % 100);

		cr_assert_eq(write(s[i][1], &c, 1), 1);
	}
	for (int i = 0; i < N; i++)
		cr_assert_eq((intptr_t)join(f[i]), i % 100);
	cr_assert(backends_are_idle());
}

Test(op, deadline_without_data)
{
	char buf[4] = "abc";
	fz_nsec start;
	int p[2];

	setup_start(1);
	cr_assert_eq(pipe(p), 0);
	for (int i = 0; i < 50; i++) {
		start = now_ns();
		cr_assert_eq(wait_read(p[0], buf, 4, start + FZ_MSEC), FZ_OP_TIMEOUT);
		cr_assert_geq(now_ns() - start, FZ_MSEC);
	}
	cr_assert_eq(wait_read(p[0], buf, 4, 1), FZ_OP_TIMEOUT);
	cr_assert_str_eq(buf, "abc");
	/* Nobody reads any more: what comes now is for who asks then. */
	cr_assert_eq(write(p[1], "xyz", 4), 4);
	cr_assert_eq(wait_read(p[0], buf, 4, FZ_FOREVER), 4);
	cr_assert_str_eq(buf, "xyz");
	cr_assert(backends_are_idle());
}

/*
 * Data and deadline race: what the kernel took out of the pipe is returned, never
 * dropped.  The sum tells.
 */
static _Atomic bool over;

static void *dribble(void *arg)
{
	int fd = (int)(uintptr_t)arg;
	uint64_t seed = 3;
	uint32_t n = 0;

	while (!GET(over)) {
		fz_nsec until = now_ns() + random_next(&seed) % (60 * FZ_USEC);

		while (now_ns() < until)
			continue;
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			break;
		n++;
	}
	close(fd);
	return (void *)(uintptr_t)n;
}

static void race_of_data_and_deadline(unsigned processors)
{
	uint32_t next = 0, got;
	uint64_t seed = 17;
	unsigned timeouts = 0;
	pthread_t t;
	void *written;
	int p[2], ret;

	setup_start(processors);
	cr_assert_eq(pipe(p), 0);
	t = native(dribble, (void *)(uintptr_t)p[1]);
	for (unsigned i = 0; i < 20000; i++) {
		ret = wait_read(p[0], &got, sizeof(got),
				now_ns() + random_next(&seed) % (50 * FZ_USEC));
		if (ret == FZ_OP_TIMEOUT) {
			timeouts++;
			continue;
		}
		cr_assert_eq(ret, sizeof(got));
		cr_assert_eq(got, next, "number %u came instead of %u", got, next);
		next++;
	}
	SET(over, true);
	while ((ret = wait_read(p[0], &got, sizeof(got), FZ_FOREVER)) > 0)
		cr_assert_eq(got, next++);
	cr_assert_eq(ret, 0);
	pthread_join(t, &written);
	cr_assert_eq((uintptr_t)written, next);
	cr_assert_gt(timeouts, 0);
	cr_assert(backends_are_idle());
}

Test(op, data_that_races_with_the_deadline_is_returned)
{
	race_of_data_and_deadline(1);
}

Test(op, data_that_races_with_the_deadline_is_returned_two_processors)
{
	race_of_data_and_deadline(2);
}

/* ---- poll of several ----------------------------------------------------- */

Test(op, poll_of_several)
{
	enum { N = 64 };
	struct pollfd fds[N];
	int p[N][2];
	char c;

	setup_start(1);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(pipe(p[i]), 0);
		fds[i] = (struct pollfd){ .fd = p[i][0], .events = POLLIN };
	}
	cr_assert_eq(fz_op_poll(fz_self(), fds, N, now_ns() + FZ_MSEC, 0), FZ_OP_TIMEOUT);
	cr_assert(backends_are_idle());
	for (unsigned n = 1; n <= N; n += 7) {
		cr_assert_eq(write(p[n - 1][1], "", 1), 1);
		cr_assert_eq(fz_op_poll(fz_self(), fds, n, FZ_FOREVER, 0), 1);
		cr_assert(backends_are_idle());
		cr_assert_eq(read(p[n - 1][0], &c, 1), 1);
	}
	/* All ready at once. */
	for (int i = 0; i < N; i++)
		cr_assert_eq(write(p[i][1], "", 1), 1);
	cr_assert_eq(fz_op_poll(fz_self(), fds, N, FZ_FOREVER, 0), 1);
	cr_assert(backends_are_idle());
	/* A bad descriptor is an event too. */
	fds[0].fd = 999;
	cr_assert_eq(fz_op_poll(fz_self(), fds, 1, FZ_FOREVER, 0), 1);
	/* The same one twice. */
	fds[0] = fds[1];
	cr_assert_eq(fz_op_poll(fz_self(), fds, 2, FZ_FOREVER, 0), 1);
	cr_assert(backends_are_idle());
}

static void *poke(void *arg)
{
	int fd = (int)(uintptr_t)arg;

	while (!GET(over)) {
		if (write(fd, "", 1) != 1)
			break;
		nap(20 * FZ_USEC);
	}
	return NULL;
}

static void *poll_often(void *arg)
{
	int (*p)[2] = arg;
	uint64_t seed = (uintptr_t)&seed;
	intptr_t failures = 0;

	for (unsigned i = 0; i < 3000; i++) {
		struct pollfd fds[4];
		char c[64];
		int ret;

		for (int n = 0; n < 4; n++)
			fds[n] = (struct pollfd){ .fd = p[n][0], .events = POLLIN };
		ret = fz_op_poll(fz_self(), fds, 4,
				 now_ns() + random_next(&seed) % (100 * FZ_USEC), 0);
		if (ret != 1 && ret != FZ_OP_TIMEOUT)
			failures++;
		for (int n = 0; n < 4; n++)
			while (read(p[n][0], c, sizeof(c)) > 0)
				continue;
	}
	return (void *)failures;
}

Test(op, polls_race_with_events_and_deadlines)
{
	struct fz_fiber *f[6];
	pthread_t t[2];
	int p[4][2];

	setup_start(2);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pipe2(p[i], O_NONBLOCK), 0);
	t[0] = native(poke, (void *)(uintptr_t)p[0][1]);
	t[1] = native(poke, (void *)(uintptr_t)p[3][1]);
	for (int i = 0; i < 6; i++)
		f[i] = spawn(poll_often, p);
	for (int i = 0; i < 6; i++)
		cr_assert_null(join(f[i]));
	SET(over, true);
	for (int i = 0; i < 4; i++)
		close(p[i][0]);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cr_assert(backends_are_idle());
}

/* ---- requests that must be taken back ------------------------------------ */

static int silent[2];

static void *time_out_often(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 77 + 1;

	for (unsigned i = 0; i < 300; i++) {
		if (wait_poll(silent[0], now_ns() + random_next(&seed) % (200 * FZ_USEC)) !=
		    FZ_OP_TIMEOUT)
			return (void *)1;
		if (random_next(&seed) % 4 == 0)
			yield_fiber();
	}
	return NULL;
}

/*
 * The sleeper may continue on another processor than the one whose ring has the
 * request, maybe not yet submitted.  A cancellation that got lost would leave it
 * asleep for ever.
 */
static void timeouts_everywhere(unsigned processors)
{
	enum { N = 100 };
	struct fz_fiber *f[N];

	setup_start(processors);
	cr_assert_eq(pipe(silent), 0);
	for (uintptr_t i = 0; i < N; i++)
		f[i] = spawn_with(time_out_often, (void *)i, 65536, false);
	for (int i = 0; i < N; i++)
		cr_assert_null(join(f[i]));
	cr_assert(EVENTUALLY(backends_are_idle()));
}

Test(op, timeouts_on_one_processor)
{
	timeouts_everywhere(1);
}

Test(op, timeouts_while_fibers_are_stolen)
{
	timeouts_everywhere(4);
}

enum { CANCELED_BIT = 8 };

static void *poll_for_ever(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)wait_poll(silent[0], FZ_FOREVER);
}

static void cancel(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();

	atomic_fetch_or(fz_tcb_cancelhandling(f->tcb), CANCELED_BIT);
	atomic_store(&f->cancel.sent, true);
	fz_enter_runtime(self);
	fz_wake_any(f, FZ_WHY_CANCEL);
	fz_leave_runtime(self);
}

static void cancel_at_once(unsigned processors)
{
	enum { N = 60, ROUNDS = 30 };
	struct fz_fiber *f[N];
	uint64_t seed = 5;

	setup_start(processors);
	cr_assert_eq(pipe(silent), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++)
			f[i] = spawn_with(poll_for_ever, NULL, 65536, false);
		for (uint64_t n = random_next(&seed) % 4; n; n--)
			yield_fiber();
		for (int i = 0; i < N; i++)
			cancel(f[i]);
		for (int i = 0; i < N; i++)
			cr_assert_eq((intptr_t)join(f[i]), FZ_OP_CANCEL);
	}
	cr_assert(EVENTUALLY(backends_are_idle()));
}

Test(op, cancel_one_processor)
{
	cancel_at_once(1);
}

Test(op, cancel_while_fibers_are_stolen)
{
	cancel_at_once(4);
}

/*
 * A deadline passes although there is always something else to run, and always a
 * completion to be had: timers are not only for who is idle.  The clock is what the others
 * do: between the deadline and its fiber's turn they may make so many rounds.
 */
enum { MOST_ROUNDS_LATE = 100000 };

static int gate[2];
static _Atomic unsigned busy, rounds_late;
static _Atomic fz_nsec deadline;

static void *busy_with_requests(void *arg)
{
	struct fz_op op = { .opcode = IORING_OP_NOP };
	char c;

	/* They begin together: beside others that are busy already, births are slow. */
	if (wait_read(gate[0], &c, 1, FZ_FOREVER) != 1)
		return arg;
	COUNT(busy);
	while (!GET(over)) {
		fz_op_wait(fz_self(), &op, FZ_FOREVER, 0);
		if (now_ns() > GET(deadline) && COUNT(rounds_late) == MOST_ROUNDS_LATE)
			SET(over, true);
	}
	return NULL;
}

static void deadlines_under_load(unsigned fibers)
{
	struct fz_fiber *f[200];
	static const char bytes[200];

	setup_start(1);
	cr_assert_eq(pipe(gate), 0);
	SET(deadline, FZ_FOREVER);
	for (unsigned i = 0; i < fibers; i++)
		f[i] = spawn(busy_with_requests, NULL);
	cr_assert_eq(write(gate[1], bytes, fibers), fibers);
	while (GET(busy) < fibers)
		yield_fiber();
	SET(deadline, now_ns() + 5 * FZ_MSEC);
	cr_assert_eq(fz_sleep(fz_self(), FZ_FOR_TIME, GET(deadline), 0), FZ_WHY_TIMEOUT);
	SET(over, true);
	for (unsigned i = 0; i < fibers; i++)
		cr_assert_null(join(f[i]));
	cr_assert_leq(rounds_late, MOST_ROUNDS_LATE);
}

Test(op, deadline_passes_while_one_other_is_busy)
{
	deadlines_under_load(1);
}

Test(op, deadline_passes_while_many_others_are_busy)
{
	deadlines_under_load(200);
}

static _Atomic unsigned wired_with_requests;

static void *become_wired(void *arg)
{
	fz_fiber_wire(fz_self());
	if (fz_self()->carrier->submitted)
		COUNT(wired_with_requests);
	return arg;
}

/* The kernel thread of a wired fiber ends with the fiber; requests that it submitted would be late. */
Test(op, a_wired_fiber_gets_a_carrier_without_requests)
{
	enum { N = 20 };
	struct fz_fiber *readers[N];
	int s[N][2];

	setup_start(1);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]), 0);
		readers[i] = spawn(read_one, (void *)(uintptr_t)s[i][0]);
		yield_fiber();
		join(spawn(become_wired, NULL));
	}
	for (int i = 0; i < N; i++) {
		cr_assert_eq(write(s[i][1], "x", 1), 1);
		cr_assert_eq((intptr_t)join(readers[i]), 'x');
	}
	cr_assert_eq(GET(wired_with_requests), 0);
}

/* ---- closing ------------------------------------------------------------- */

/* Queued requests name the open file, not what gets its number later. */
Test(op, flush_before_close)
{
	struct fz_processor *p;
	struct fz_fiber *f;
	int a[2], b[2];

	setup_start(1);
	cr_assert_eq(pipe(a), 0);
	cr_assert_eq(pipe(b), 0);
	f = spawn(read_one, (void *)(uintptr_t)a[0]);
	p = fz_processor_of(fz_self());
	/* It runs, queues its request, and we are back. */
	while (!fz_backend_in_flight(&p->backend))
		yield_fiber();
	fz_op_flush_fd(fz_self(), a[0]);
	cr_assert_eq(fz_ring_queued(&p->backend.ring), 0);
	dup2(b[0], a[0]);
	cr_assert_eq(write(b[1], "B", 1), 1);
	cr_assert_eq(write(a[1], "A", 1), 1);
	cr_assert_eq((intptr_t)join(f), 'A');
}
