/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_turns.c - many threads wait for one descriptor, of which one at a time has a
 * request in the kernel; all that can end a single wait: a signal, a cancellation, a timeout; that the
 * descriptor is closed and its number used again, that it is shut down; other kinds of waits beside.
 * Whoever leaves must not take with it what the others wait for.
 */
#include "check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { CROWD = 60, ROUNDS = 20 };

static pthread_t threads[CROWD];
static atomic_int here, got, failed;

struct wait {
	int fd;
	size_t size;		/* of the buffer */
	int flags;		/* of recv; -1: read */
	int error;		/* what it may end with, beside a byte or the end */
};

/* Let those that are about to wait do so.  Nothing depends on it but what is tested. */
static void let_wait(int n)
{
	while (atomic_load(&here) < n)
		usleep(1000);
	usleep(20000);
}

static void *waits(void *arg)
{
	const struct wait *w = arg;
	char buf[16];
	ssize_t n;

	atomic_fetch_add(&here, 1);
	n = w->flags < 0 ? read(w->fd, buf, w->size) : recv(w->fd, buf, w->size, w->flags);
	if (n < 0) {
		CHECK_INT(errno, w->error);
		atomic_fetch_add(&failed, 1);
	} else if (n > 0) {
		atomic_fetch_add(&got, (int)n);
	}
	return NULL;
}

static void begin(int from, int n, const struct wait *w)
{
	if (!from) {
		atomic_store(&here, 0);
		atomic_store(&got, 0);
		atomic_store(&failed, 0);
	}
	for (int i = from; i < n; i++)
		threads[i] = start(waits, (void *)w);
	let_wait(n);
}

static void end(int from, int n)
{
	for (int i = from; i < n; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
}

static void give(int fd, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(write(fd, "x", 1), 1);
}

/* ---- one byte after the other ---------------------------------------------------- */

static int there[2], back[2];

static void *takes(void *arg)
{
	char c = 0;

	for (int i = 0; i < ROUNDS; i++) {
		atomic_fetch_add(&here, 1);
		CHECK_INT(read(there[0], &c, 1), 1);
		CHECK_INT(write(back[1], &c, 1), 1);
	}
	return arg;
}

/* Who has read goes back into the queue. */
static void one_by_one(void)
{
	char c;

	CHECK_OK(pipe(there));
	CHECK_OK(pipe(back));
	atomic_store(&here, 0);
	for (int i = 0; i < CROWD; i++)
		threads[i] = start(takes, NULL);
	let_wait(CROWD);
	for (int i = 0; i < CROWD * ROUNDS; i++) {
		give(there[1], 1);
		CHECK_INT(read(back[0], &c, 1), 1);
	}
	end(0, CROWD);
	puts("each has read");
}

/* ---- leaving ------------------------------------------------------------------ */

static void nothing(int sig)
{
	(void)sig;
}

/* Every second one is interrupted or cancelled, also the one whose turn it is. */
static void some_leave(bool cancel)
{
	struct wait w = { 0, 1, -1, EINTR };
	int p[2], left;

	CHECK_OK(pipe(p));
	w.fd = p[0];
	begin(0, CROWD, &w);
	for (int i = 0; i < CROWD; i += 2)
		CHECK_OK(cancel ? pthread_cancel(threads[i]) : pthread_kill(threads[i], SIGUSR1));
	/* As many bytes as there are others, while the leavers leave: somebody takes each. */
	give(p[1], CROWD / 2);
	do {
		CHECK_OK(ioctl(p[0], FIONREAD, &left));
		usleep(1000);
	} while (left);
	/* Those who had a byte before they were asked to leave. */
	give(p[1], CROWD);
	end(0, CROWD);
	CHECK(atomic_load(&got) >= CROWD / 2);
	CHECK_OK(close(p[0]) | close(p[1]));
	puts(cancel ? "cancelled" : "interrupted");
}

/* SO_RCVTIMEO ends all of them, whether it is their turn or not; those without get what comes. */
static void timeouts(void)
{
	const struct timeval span = { .tv_usec = 150000 };
	struct wait w = { 0, 1, 0, EAGAIN };
	const long long before = now(CLOCK_MONOTONIC);
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)));
	w.fd = s[0];
	begin(0, CROWD, &w);
	end(0, CROWD);
	CHECK(now(CLOCK_MONOTONIC) - before >= 150 * MS);
	CHECK_INT(atomic_load(&failed), CROWD);
	CHECK_OK(close(s[0]) | close(s[1]));
	puts("timeouts");
}

/* ---- the descriptor ------------------------------------------------------------- */

/*
 * The descriptor is closed while they wait, and its number names another file: the old ones go on with the
 * old file, the new ones wait for the new one.
 */
static void closed(bool replaced, bool socket)
{
	int p[2], q[2];
	struct wait w = { 0, 1, socket ? 0 : -1, 0 };

	CHECK_OK(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, p) : pipe(p));
	CHECK_OK(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, q) : pipe(q));
	w.fd = p[0];
	begin(0, CROWD / 2, &w);
	if (replaced)
		CHECK_INT(dup2(q[0], p[0]), p[0]);
	else
		CHECK_OK(close(p[0]));
	if (!replaced)
		CHECK_INT(fcntl(q[0], F_DUPFD, p[0]), p[0]);
	begin(CROWD / 2, CROWD, &w);
	give(q[1], CROWD / 4);
	for (int i = 0; atomic_load(&got) < CROWD / 4; i++)
		usleep(1000);
	/* Half of the old ones, then the end of their file. */
	give(p[1], CROWD / 4);
	while (atomic_load(&got) < CROWD / 2)
		usleep(1000);
	CHECK_OK(close(p[1]));
	end(0, CROWD / 2);
	CHECK_INT(atomic_load(&got), CROWD / 2);
	give(q[1], CROWD / 4);
	end(CROWD / 2, CROWD);
	CHECK_INT(atomic_load(&got), 3 * CROWD / 4);
	CHECK_OK(close(p[0]) | close(q[0]) | close(q[1]));
	printf("%s %s\n", socket ? "socket" : "pipe", replaced ? "replaced" : "closed");
}

/* The last reader has gone: a writer learns that. */
static void released(void)
{
	struct wait w = { 0, 1, -1, 0 };
	int p[2];

	CHECK_OK(pipe(p));
	w.fd = p[0];
	begin(0, CROWD, &w);
	CHECK_OK(close(p[0]));
	give(p[1], CROWD);
	end(0, CROWD);
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	CHECK_OK(close(p[1]));
	puts("released");
}

static void shut_down(void)
{
	struct wait w = { 0, 1, 0, 0 };
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	w.fd = s[0];
	begin(0, CROWD, &w);
	CHECK_OK(shutdown(s[0], SHUT_RD));
	end(0, CROWD);
	CHECK_INT(atomic_load(&got), 0);
	CHECK_OK(close(s[0]) | close(s[1]));
	puts("shut down");
}

/* ---- other waits beside ----------------------------------------------------------- */

static void *polls(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	atomic_fetch_add(&here, 1);
	CHECK_INT(poll(&p, 1, -1), 1);
	return NULL;
}

/* Who polls, who peeks, who waits for all, and readers of other sizes. */
static void mixed(void)
{
	static struct wait kinds[] = {
		{ 0, 1, 0, 0 }, { 0, 1, MSG_PEEK, 0 }, { 0, 4, MSG_WAITALL, 0 }, { 0, 1, -1, 0 },
		{ 0, 2, 0, 0 },
	};
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	atomic_store(&here, 0);
	for (int i = 0; i < CROWD; i++) {
		struct wait *w = &kinds[i % COUNT(kinds)];

		w->fd = s[0];
		threads[i] = i % 7 ? start(waits, w) : start(polls, &s[0]);
	}
	let_wait(CROWD);
	/* More than all of them can take. */
	for (int i = 0; i < CROWD; i++) {
		CHECK_INT(send(s[1], "abcd", 4, 0), 4);
		sched_yield();
	}
	end(0, CROWD);
	CHECK_OK(close(s[0]) | close(s[1]));
	puts("mixed");
}

/* The descriptors of one file have a queue each; a native thread waits, too. */
static void duplicates(void)
{
	struct wait w[3] = { { 0, 1, -1, 0 }, { 0, 1, -1, 0 }, { 0, 1, -1, 0 } };
	int p[2];

	CHECK_OK(pipe(p));
	w[0].fd = p[0];
	w[1].fd = dup(p[0]);
	w[2].fd = dup(p[0]);
	atomic_store(&here, 0);
	atomic_store(&got, 0);
	for (int i = 0; i < CROWD; i++)
		threads[i] = i % 20 ? start(waits, &w[i % 3]) : start_affine(waits, &w[i % 3]);
	let_wait(CROWD);
	give(p[1], CROWD);
	end(0, CROWD);
	CHECK_INT(atomic_load(&got), CROWD);
	for (int i = 0; i < 3; i++)
		CHECK_OK(close(w[i].fd));
	CHECK_OK(close(p[1]));
	puts("duplicates");
}

static int event, instance;

static void *takes_event(void *arg)
{
	uint64_t value;

	atomic_fetch_add(&here, 1);
	CHECK_INT(read(event, &value, sizeof(value)), sizeof(value));
	CHECK_INT(value, 1);
	return arg;
}

static void *takes_by_epoll(void *arg)
{
	struct epoll_event e;
	uint64_t value;

	atomic_fetch_add(&here, 1);
	do
		CHECK_INT(epoll_wait(instance, &e, 1, -1), 1);
	while (read(event, &value, sizeof(value)) < 0);
	return arg;
}

static void events(void)
{
	const uint64_t one = 1;

	for (int k = 0; k < 2; k++) {
		struct epoll_event e = { .events = EPOLLIN };

		event = eventfd(0, EFD_SEMAPHORE | (k ? EFD_NONBLOCK : 0));
		instance = epoll_create1(0);
		CHECK(event >= 0 && instance >= 0);
		CHECK_OK(epoll_ctl(instance, EPOLL_CTL_ADD, event, &e));
		atomic_store(&here, 0);
		for (int i = 0; i < CROWD; i++)
			threads[i] = start(k ? takes_by_epoll : takes_event, NULL);
		let_wait(CROWD);
		for (int i = 0; i < CROWD; i++)
			CHECK_INT(write(event, &one, sizeof(one)), sizeof(one));
		end(0, CROWD);
		CHECK_OK(close(event) | close(instance));
	}
	puts("events");
}

/* ---- writers, and a copy of the process --------------------------------------------- */

static int full[2];

static void *writes(void *arg)
{
	static char page[4096];

	atomic_fetch_add(&here, 1);
	CHECK_INT(write(full[1], page, sizeof(page)), sizeof(page));
	return arg;
}

static void writers(void)
{
	static char buf[4096];
	size_t left = CROWD * sizeof(buf);
	ssize_t n;

	CHECK_OK(pipe(full));
	CHECK_OK(fcntl(full[1], F_SETFL, O_NONBLOCK));
	while ((n = write(full[1], buf, sizeof(buf))) > 0)
		left += (size_t)n;
	CHECK_OK(fcntl(full[1], F_SETFL, 0));
	atomic_store(&here, 0);
	for (int i = 0; i < CROWD; i++)
		threads[i] = start(writes, NULL);
	let_wait(CROWD);
	for (; left; left -= (size_t)n)
		CHECK((n = read(full[0], buf, sizeof(buf))) > 0);
	end(0, CROWD);
	CHECK_OK(close(full[0]) | close(full[1]));
	puts("writers");
}

/* The child has the descriptor, and nobody who waits for it. */
static void forked(void)
{
	struct wait w = { 0, 1, -1, 0 };
	int p[2], status;
	pid_t child;

	CHECK_OK(pipe(p));
	w.fd = p[0];
	begin(0, CROWD, &w);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		int q[2];

		CHECK_INT(dup2(p[1], p[1]), p[1]);
		CHECK_OK(pipe(q));
		CHECK_INT(dup2(q[0], p[0]), p[0]);
		begin(0, CROWD, &w);
		give(q[1], CROWD);
		end(0, CROWD);
		_exit(atomic_load(&got) != CROWD);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	give(p[1], CROWD);
	end(0, CROWD);
	CHECK_INT(atomic_load(&got), CROWD);
	CHECK_OK(close(p[0]) | close(p[1]));
	puts("forked");
}

int main(void)
{
	const struct sigaction action = { .sa_handler = nothing };

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	signal(SIGPIPE, SIG_IGN);
	one_by_one();
	some_leave(false);
	some_leave(true);
	timeouts();
	for (int i = 0; i < 4; i++)
		closed(i & 1, i & 2);
	released();
	shut_down();
	mixed();
	duplicates();
	events();
	writers();
	forked();
	return success();
}
