/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_crowd.c - hundreds of threads wait for one descriptor: to read, to write,
 * by poll for either. A byte wakes one reader, room wakes writers, and who polls sees both;
 * signals take single readers out of the middle.
 */
#include "check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { READERS = 200, WRITERS = 60, POLLERS = 40, LEAVERS = 50, CHUNK = 4096 };

static int s[2], ends[2];
static atomic_int bytes, written, saw_data, saw_room, left;
static atomic_bool going;

static void *reads(void *arg)
{
	char c;

	CHECK_INT(recv(s[0], &c, 1, 0), 1);
	atomic_fetch_add(&bytes, c);
	return arg;
}

static void *writes(void *arg)
{
	static char chunk[CHUNK];

	CHECK_INT(send(s[0], chunk, CHUNK, 0), CHUNK);
	atomic_fetch_add(&written, 1);
	return arg;
}

static void *polls_in(void *arg)
{
	struct pollfd p = { .fd = s[0], .events = POLLIN };

	CHECK_INT(poll(&p, 1, -1), 1);
	CHECK_INT(p.revents, POLLIN);
	atomic_fetch_add(&saw_data, 1);
	return arg;
}

static void *polls_out(void *arg)
{
	struct pollfd p = { .fd = s[0], .events = POLLOUT };

	CHECK_INT(poll(&p, 1, -1), 1);
	CHECK(p.revents & POLLOUT);
	atomic_fetch_add(&saw_room, 1);
	return arg;
}

/* One of the readers of a pipe: reads a byte, or is sent away. */
static void *may_leave(void *arg)
{
	char c;
	ssize_t n;

	while ((n = read(ends[0], &c, 1)) < 0 && errno == EINTR && !(arg && atomic_load(&going)))
		continue;
	if (n == 1)
		atomic_fetch_add(&bytes, 1);
	else
		CHECK_INT(n, -1);
	atomic_fetch_add(&left, arg != NULL);
	return NULL;
}

static void make(pthread_t *t, int n, void *(*fn)(void *))
{
	for (int i = 0; i < n; i++)
		CHECK_INT(pthread_create(&t[i], NULL, fn, NULL), 0);
}

static void join(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(pthread_join(t[i], NULL), 0);
}

static void in_both_directions(void)
{
	static pthread_t r[READERS], w[WRITERS], i[POLLERS], o[POLLERS];
	static char buf[65536];
	long filled = 0, n;
	const char one = 1;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	while ((n = send(s[0], buf, CHUNK, MSG_DONTWAIT)) > 0)
		filled += n;
	make(w, WRITERS / 2, writes);
	make(r, READERS / 2, reads);
	make(i, POLLERS, polls_in);
	make(o, POLLERS, polls_out);
	make(r + READERS / 2, READERS / 2, reads);
	make(w + WRITERS / 2, WRITERS / 2, writes);
	for (int k = 0; k < READERS; k++)
		CHECK_INT(send(s[1], &one, 1, 0), 1);
	join(r, READERS);
	printf("read %d\n", atomic_load(&bytes));
	/* This byte stays. */
	CHECK_INT(send(s[1], &one, 1, 0), 1);
	join(i, POLLERS);
	for (filled += (long)WRITERS * CHUNK; filled; filled -= n)
		CHECK((n = recv(s[1], buf, sizeof(buf), 0)) > 0);
	join(w, WRITERS);
	join(o, POLLERS);
	printf("written %d, saw data %d, saw room %d\n", atomic_load(&written),
	       atomic_load(&saw_data), atomic_load(&saw_room));
}

static void nothing(int sig)
{
	(void)sig;
}

static void some_leave(void)
{
	static pthread_t t[2 * LEAVERS];
	struct sigaction action = { .sa_handler = nothing };

	atomic_store(&bytes, 0);
	CHECK_OK(pipe(ends));
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 2 * LEAVERS; i++)
		CHECK_INT(pthread_create(&t[i], NULL, may_leave, i % 2 ? &left : NULL), 0);
	atomic_store(&going, true);
	/* A signal that comes before the read ends nothing: until it does. */
	while (atomic_load(&left) < LEAVERS) {
		for (int i = 1; i < 2 * LEAVERS; i += 2)
			CHECK_INT(pthread_kill(t[i], SIGUSR1), 0);
		usleep(1000);
	}
	for (int i = 0; i < LEAVERS; i++)
		CHECK_INT(write(ends[1], "x", 1), 1);
	join(t, 2 * LEAVERS);
	printf("read %d, left %d\n", atomic_load(&bytes), atomic_load(&left));
}

int main(void)
{
	in_both_directions();
	some_leave();
	puts("EXIT-SUCCESS");
	return 0;
}
