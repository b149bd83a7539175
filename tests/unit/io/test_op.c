/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "requests.h"
#include "runtime/fiber/wire.h"
#include "runtime/io/op.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

static _Atomic bool over;

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

/* ---- beside others that are busy ----------------------------------------- */

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

/* ---- a fiber with a kernel thread of its own ----------------------------- */

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

/* From here on the calls of this thread that transfer at an offset are denied. */
static void deny_at_offset(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* A request at an offset, made by a system call, which a filter denies: the caller must make the program's own call. */
Test(op, denied_at_an_offset)
{
	const uint8_t opcodes[] = { IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READV, IORING_OP_WRITEV };
	const int file = fileno(tmpfile());
	char buf[4] = "abc";
	const struct iovec iov = { buf, sizeof(buf) };

	setup_start_on(1, FZ_BACKEND_EPOLL);
	deny_at_offset();
	for (int i = 0; i < 8; i++) {
		struct fz_op op = { .opcode = opcodes[i / 2], .fd = file, .off = 1, .addr = (uintptr_t)buf,
				    .len = sizeof(buf) };

		if (i / 2 >= 2) {
			op.addr = (uintptr_t)&iov;
			op.len = 1;
		}
		if (i % 2)
			op.op_flags = i / 2 % 2 ? RWF_DSYNC : RWF_HIPRI;
		cr_assert_eq(fz_op_wait(fz_self(), &op, FZ_FOREVER, 0), FZ_OP_FORBIDDEN, "%d", i);
	}
}
