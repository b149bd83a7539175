/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "epoll_fixture.h"
#include "requests.h"
#include "runtime/backend/watch.h"
#include "runtime/io/op.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

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

Test(watch, one_datum_for_each_of_many_readers)
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
Test(watch, an_event_for_one_watch_leaves_the_others_alone)
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
Test(watch, both_directions_of_one_descriptor)
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
Test(watch, closed_and_used_again_under_waiters)
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
Test(watch, closed_with_no_number_left)
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
Test(watch, reused_numbers_and_lingering_files)
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
