/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/backend/backend.h"
#include "runtime/backend/watch.h"
#include "runtime/base/features.h"
#include "runtime/io/op.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime_setup.h"

static void start_runtime(unsigned processors)
{
	setup_start_on(processors, FZ_BACKEND_EPOLL);
}

static int receive(int fd, void *buf, size_t n, int flags, fz_nsec deadline)
{
	struct fz_op op = {
		.opcode = IORING_OP_RECV, .fd = fd, .addr = (uintptr_t)buf,
		.len = (uint32_t)n, .op_flags = (uint32_t)flags,
	};

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

static int wait_ready(int fd, unsigned events, fz_nsec deadline)
{
	struct fz_op op = { .opcode = IORING_OP_POLL_ADD, .fd = fd, .op_flags = events };

	return fz_op_wait(fz_self(), &op, deadline, FZ_WAIT_CANCEL);
}

static unsigned watching(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += GET(fz_sched.processors[i].backend.epoll.watching);
	return n;
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void *receive_one(void *arg)
{
	char c = 0;
	int ret = receive((int)(intptr_t)arg, &c, 1, 0, FZ_FOREVER);

	return (void *)(intptr_t)(ret == 1 ? c : ret);
}

static void *await_room(void *arg)
{
	return (void *)(intptr_t)wait_ready((int)(intptr_t)arg, POLLOUT, FZ_FOREVER);
}

Test(epoll, one_datum_for_each_of_many_readers)
{
	enum { N = 200 };
	struct fz_fiber *f[N];
	int s[2], sum = 0;

	start_runtime(2);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	for (intptr_t i = 0; i < N; i++)
		f[i] = spawn_with(receive_one, (void *)(intptr_t)s[0], 65536, false);
	cr_assert(EVENTUALLY(watching() == N));
	for (int i = 0; i < N; i++) {
		char c = (char)(i % 100);

		while (send(s[1], &c, 1, MSG_DONTWAIT) != 1)
			nap(FZ_MSEC);
	}
	for (int i = 0; i < N; i++)
		sum += (int)(intptr_t)join(f[i]);
	cr_assert_eq(sum, N / 100 * 4950);
	cr_assert_eq(watching(), 0);
}

/*
 * With thousands of threads at one descriptor nobody may go through all of them for each event:
 * all watches but the first two and the last are where no look at them is allowed.
 */
Test(epoll, an_event_for_one_watch_leaves_the_others_alone)
{
	enum { N = 64, PAGE = 4096 };
	char *pages = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fz_watch *w[N];
	struct fz_epoll *e;
	struct fz_ticket ticket;
	int s[2];

	start_runtime(1);
	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	fz_enter_runtime(fz_self());
	e = fz_backend_epoll(&fz_processor_of(fz_self())->backend);
	ticket = fz_wait_arm(fz_self(), 0);
	for (int i = 0; i < N; i++) {
		w[i] = (struct fz_watch *)(pages + (size_t)i * PAGE);
		fz_watch_init(w[i], s[0], POLLIN, true);
		cr_assert_eq(fz_watch_start(e, w[i], ticket), 0);
	}
#ifndef FZ_DEBUG	/* whose assertions walk the lists */
	cr_assert_eq(mprotect(pages + 2 * PAGE, (N - 3) * PAGE, PROT_NONE), 0);
#endif
	fz_watch_dispatch(e, s[0], POLLIN);
	cr_assert(w[0]->fired && !w[1]->fired && !w[N - 1]->fired);
	fz_watch_end(w[0]);
	fz_wait_disarm(fz_self());
	ticket = fz_wait_arm(fz_self(), 0);
	fz_watch_init(w[0], s[0], POLLIN, true);
	cr_assert_eq(fz_watch_start(e, w[0], ticket), 0);
	cr_assert_eq(mprotect(pages, N * PAGE, PROT_READ | PROT_WRITE), 0);
	for (int i = 0; i < N; i++)
		fz_watch_end(w[i]);
	fz_wait_disarm(fz_self());
	fz_leave_runtime(fz_self());
	cr_assert_eq(watching(), 0);
	munmap(pages, N * PAGE);
}

/* Who waits for room is not served by data, nor the other way round. */
Test(epoll, both_directions_of_one_descriptor)
{
	static char bulk[1 << 20];
	struct fz_fiber *reader, *writer;
	int s[2];

	start_runtime(1);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	while (send(s[0], bulk, sizeof(bulk), MSG_DONTWAIT) > 0)
		continue;
	reader = spawn(receive_one, (void *)(intptr_t)s[0]);
	writer = spawn(await_room, (void *)(intptr_t)s[0]);
	cr_assert(EVENTUALLY(watching() == 2));
	cr_assert_eq(send(s[1], "r", 1, 0), 1);
	cr_assert_eq((intptr_t)join(reader), 'r');
	cr_assert_eq(watching(), 1);
	reader = spawn(receive_one, (void *)(intptr_t)s[0]);
	cr_assert(EVENTUALLY(watching() == 2));
	while (recv(s[1], bulk, sizeof(bulk), MSG_DONTWAIT) > 0)
		continue;
	cr_assert((intptr_t)join(writer) & POLLOUT);
	cr_assert_eq(send(s[1], "s", 1, 0), 1);
	cr_assert_eq((intptr_t)join(reader), 's');
	cr_assert_eq(watching(), 0);
}

/* Natively a call in progress goes on with what its number named when it began. */
Test(epoll, closed_and_used_again_under_waiters)
{
	enum { N = 3 };
	struct fz_fiber *f[N], *other;
	int s[2], t[2], before;

	start_runtime(2);
	before = open_fds();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	for (int i = 0; i < N; i++)
		f[i] = spawn(receive_one, (void *)(intptr_t)s[0]);
	cr_assert(EVENTUALLY(watching() == N));
	fz_op_flush_fd(fz_self(), s[0]);
	close(s[0]);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, t), 0);
	cr_assert_eq(t[0], s[0]);
	other = spawn(receive_one, (void *)(intptr_t)t[0]);
	cr_assert(EVENTUALLY(watching() == N + 1));
	for (int i = 0; i < N; i++)
		cr_assert_eq(send(s[1], "o", 1, 0), 1);
	for (int i = 0; i < N; i++)
		cr_assert_eq((intptr_t)join(f[i]), 'o');
	cr_assert_eq(watching(), 1);
	cr_assert_eq(send(t[1], "n", 1, 0), 1);
	cr_assert_eq((intptr_t)join(other), 'n');
	close(s[1]);
	close(t[0]);
	close(t[1]);
	cr_assert_eq(open_fds(), before, "the private copy is closed");
}

static void *close_later(void *arg)
{
	nap(5 * FZ_MSEC);
	fz_op_flush_fd(fz_self(), (int)(intptr_t)arg);
	close((int)(intptr_t)arg);
	return NULL;
}

/* There is no number for a copy: then the waiter learns that it is closed. */
Test(epoll, closed_with_no_number_left)
{
	struct rlimit few = { 64, 64 };
	struct fz_fiber *closer;
	char c;
	int s[2], fd;

	start_runtime(1);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		continue;
	closer = spawn(close_later, (void *)(intptr_t)s[0]);
	cr_assert_eq(receive(s[0], &c, 1, 0, FZ_FOREVER), -EBADF);
	join(closer);
}

/* Closed behind our back: what we remember must not be in the way. */
Test(epoll, reused_numbers_and_lingering_files)
{
	int s[2], t[2], copy;
	char c = 0;

	start_runtime(1);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	/* Armed, and left so by a deadline. */
	cr_assert_eq(receive(s[0], &c, 1, 0, now_ns() + FZ_MSEC), FZ_OP_TIMEOUT);
	copy = dup(s[0]);
	close(s[0]);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, t), 0);
	cr_assert_eq(t[0], s[0]);
	/* The old one, alive as a copy, fires for the same number. */
	cr_assert_eq(send(s[1], "x", 1, 0), 1);
	cr_assert_eq(receive(t[0], &c, 1, 0, now_ns() + 20 * FZ_MSEC), FZ_OP_TIMEOUT);
	cr_assert_eq(send(t[1], "y", 1, 0), 1);
	cr_assert_eq(receive(t[0], &c, 1, 0, FZ_FOREVER), 1);
	cr_assert_eq(c, 'y');
	cr_assert_eq(receive(copy, &c, 1, 0, FZ_FOREVER), 1);
	cr_assert_eq(c, 'x');
	cr_assert_eq(watching(), 0);
}

static fz_nsec wait_in_vain(int fd)
{
	const fz_nsec start = now_ns();
	fz_nsec took;
	char c;

	cr_assert_eq(receive(fd, &c, 1, 0, start + 100 * FZ_USEC), FZ_OP_TIMEOUT);
	took = now_ns() - start;
	cr_assert_geq(took, 100 * FZ_USEC);
	return took;
}

/*
 * The best of many attempts counts, since a busy machine makes most of them late; rounded up to milliseconds, all are.
 * An attempt is two waits in a row, so that one which something else happened to end does not count.
 */
Test(epoll, deadlines_are_never_early_nor_milliseconds_late)
{
	for (int without = 0; without < 2; without++) {
		fz_nsec best = FZ_FOREVER;
		int s[2];

		if (without)
			fz_features_without = 1 << FZ_FEATURE_EPOLL_PWAIT2;
		if (!without)
			start_runtime(1);
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
		for (int i = 0; i < 100 || (best >= FZ_MSEC && i < 20000); i++) {
			fz_nsec first = wait_in_vain(s[0]), second = wait_in_vain(s[0]);
			fz_nsec longer = first > second ? first : second;

			best = longer < best ? longer : best;
		}
		cr_assert_lt(best, FZ_MSEC);
	}
}

/* ---- what cannot be waited for ------------------------------------------- */

Test(epoll, files_and_wrong_descriptors)
{
	char name[] = "/tmp/test_epoll.XXXXXX", buf[8];
	int fd, p[2];
	struct pollfd fds[2];
	struct fz_op op = {
		.opcode = IORING_OP_READ, .off = 1, .addr = (uintptr_t)buf, .len = 3,
	};

	start_runtime(1);
	fd = mkstemp(name);
	unlink(name);
	cr_assert_eq(write(fd, "hello", 5), 5);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	op.fd = fd;
	cr_assert_eq(fz_op_wait(fz_self(), &op, FZ_FOREVER, 0), 3);
	cr_assert_eq(memcmp(buf, "ell", 3), 0);
	/* A file never becomes what it was not: only the deadline ends that. */
	cr_assert_eq(pipe(p), 0);
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLPRI };
	fds[1] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	cr_assert_eq(fz_op_poll(fz_self(), fds, 2, now_ns() + 5 * FZ_MSEC, 0), FZ_OP_TIMEOUT);
	cr_assert_eq(write(p[1], "x", 1), 1);
	cr_assert_eq(fz_op_poll(fz_self(), fds, 2, FZ_FOREVER, 0), 1);
	close(p[0]);
	cr_assert_eq(fz_op_poll(fz_self(), fds, 2, FZ_FOREVER, 0), 1, "closed is ready");
	cr_assert_eq(receive(-1, buf, 1, 0, FZ_FOREVER), -EBADF);
	cr_assert_eq(receive(fd, buf, 1, 0, FZ_FOREVER), -ENOTSOCK);
	op.fd = p[1];
	cr_assert_eq(fz_op_wait(fz_self(), &op, FZ_FOREVER, 0), -ESPIPE);
	cr_assert_eq(watching(), 0);
}

/* ---- MSG_WAITALL ---------------------------------------------------------- */

static void *send_in_pieces(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (int i = 0; i < 10; i++) {
		nap(FZ_MSEC);
		if (send(fd, "0123456789" + i, 1, 0) != 1)
			return (void *)1;
	}
	shutdown(fd, SHUT_WR);
	return NULL;
}

static void tcp_pair(int s[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	s[0] = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(s[0], (struct sockaddr *)&a, sizeof(a)), 0);
	s[1] = accept(listener, NULL, NULL);
	close(listener);
}

Test(epoll, waits_for_all)
{
	struct fz_fiber *f;
	char buf[16] = "";
	int s[2];

	start_runtime(2);
	tcp_pair(s);
	f = spawn(send_in_pieces, (void *)(intptr_t)s[1]);
	cr_assert_eq(receive(s[0], buf, 4, MSG_WAITALL | MSG_PEEK, FZ_FOREVER), 4);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, FZ_FOREVER), 7);
	cr_assert_eq(memcmp(buf, "0123456", 7), 0);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, FZ_FOREVER), 3, "the end is short");
	cr_assert_eq(memcmp(buf, "789", 3), 0);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, FZ_FOREVER), 0);
	cr_assert_null(join(f));
	/* A deadline: what there is, then nothing. */
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	cr_assert_eq(send(s[1], "ab", 2, 0), 2);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, now_ns() + FZ_MSEC), 2);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, now_ns() + FZ_MSEC), FZ_OP_TIMEOUT);
	/* Messages are never joined. */
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	cr_assert_eq(send(s[1], "ab", 2, 0), 2);
	cr_assert_eq(send(s[1], "cd", 2, 0), 2);
	cr_assert_eq(receive(s[0], buf, 7, MSG_WAITALL, FZ_FOREVER), 2);
}

static void *drain(void *arg)
{
	static char buf[100000];
	intptr_t total = 0, n;

	while ((n = receive((int)(intptr_t)arg, buf, sizeof(buf), 0, FZ_FOREVER)) > 0)
		total += n;
	return (void *)total;
}

Test(epoll, sends_all)
{
	enum { SIZE = 20000000 };
	char *data = calloc(1, SIZE);
	struct fz_op op = {
		.opcode = IORING_OP_SEND, .addr = (uintptr_t)data, .len = SIZE,
		.op_flags = MSG_WAITALL | MSG_NOSIGNAL,
	};
	struct fz_fiber *f;
	int s[2];

	start_runtime(2);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	f = spawn(drain, (void *)(intptr_t)s[0]);
	op.fd = s[1];
	cr_assert_eq(fz_op_wait(fz_self(), &op, FZ_FOREVER, 0), SIZE);
	close(s[1]);
	cr_assert_eq((intptr_t)join(f), SIZE);
}

/* ---- many processors ------------------------------------------------------ */

static _Atomic unsigned rounds;

/* Back and forth between fibers that are stolen all the time. */
static void *echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char c;

	while (receive(fd, &c, 1, 0, FZ_FOREVER) == 1) {
		if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
			break;
		COUNT(rounds);
		if (GET(rounds) % 7 == 0)
			yield_fiber();
	}
	return NULL;
}

Test(epoll, echo_on_many_processors)
{
	enum { N = 40, ROUNDS = 250 };
	struct fz_fiber *f[N];
	int s[N][2];
	char c;

	start_runtime(8);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]), 0);
		f[i] = spawn(echo, (void *)(intptr_t)s[i][0]);
	}
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < N; i++)
			cr_assert_eq(send(s[i][1], "z", 1, 0), 1);
		for (int i = 0; i < N; i++)
			cr_assert_eq(receive(s[i][1], &c, 1, 0, FZ_FOREVER), 1);
	}
	for (int i = 0; i < N; i++)
		close(s[i][1]);
	for (int i = 0; i < N; i++)
		join(f[i]);
	cr_assert_eq(GET(rounds), N * ROUNDS);
	cr_assert_eq(watching(), 0);
}

/* All of one kind, and the reason is remembered. */
Test(epoll, chosen_if_there_is_no_good_ring)
{
	const char *why = "", *failed;

	setup_layout();
	fz_features_without = 1 << FZ_FEATURE_SYNC_CANCEL;
	cr_assert_eq(fz_sched_start(2, FZ_BACKEND_RING, &why), -ENOSYS);
	failed = why;
	cr_assert(strcmp(failed, "io_uring_setup") == 0 ||
		  strcmp(failed, "this kernel's io_uring is too old (6.0 or newer is needed)") == 0);
	cr_assert_eq(fz_sched_start(2, FZ_BACKEND_AUTO, &why), 0);
	cr_assert_eq(fz_backend_kind(), FZ_BACKEND_EPOLL);
	cr_assert_str_eq(fz_backend_choice.failed, failed);
	cr_assert_eq(fz_backend_choice.error, ENOSYS);
	cr_assert_str_eq(fz_backend_name(), "epoll");
}
