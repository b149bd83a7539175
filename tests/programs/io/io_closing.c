/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_closing.c - descriptors closed while calls wait with them, beyond one call
 * and its answer (io_held.c): a connection that fails late, what is sent in pieces, many waiters,
 * many pairs, all descriptors at once, a child meanwhile.
 */
#include "sockets.h"

#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- a connection attempt ---------------------------------------------------- */

struct attempt {
	struct event begun;
	struct sockaddr_in address;
	int number;
};

static void *connects(void *arg)
{
	struct attempt *a = arg;

	event_post(&a->begun);
	if (connect(a->number, (struct sockaddr *)&a->address, sizeof(a->address)))
		return (void *)(long)errno;
	return NULL;
}

/* It fails long after another connection has got its number, which nothing must happen to. */
static void connection(void)
{
	struct attempt a = { .begun = EVENT_INIT };
	int l = bound_socket(SOCK_STREAM, &a.address), first, second, taken, p[2];
	pthread_t t;
	char c;

	CHECK_OK(listen(l, 0));
	second = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	a.number = taken = socket(AF_INET, SOCK_STREAM, 0);
	first = dial(&a.address);
	if (connect(second, (struct sockaddr *)&a.address, sizeof(a.address)))
		CHECK_INT(errno, EINPROGRESS);
	tcp_pair(p);
	t = start(connects, &a);
	event_wait(&a.begun, 1);
	await_others();
	CHECK_INT(dup2(p[0], taken), taken);
	CHECK_OK(close(p[0]));
	/* Its next attempt, after a second, is refused. */
	CHECK_OK(close(l));
	finish(t);
	CHECK_INT(write(p[1], "c", 1), 1);
	CHECK_INT(read(taken, &c, 1), 1);
	CHECK_INT(c, 'c');
	CHECK_OK(close(taken));
	CHECK_OK(close(p[1]));
	CHECK_OK(close(first));
	CHECK_OK(close(second));
}

/* ---- what is sent in pieces ---------------------------------------------------- */

enum { PIECES = 3, PIECE = 1 << 20 };

struct stream {
	int fd[2];
	bool messages;
};

static void *writes_pieces(void *arg)
{
	static char piece[PIECE];
	const struct stream *s = arg;
	struct mmsghdr msgs[PIECES] = { 0 };
	struct iovec iov[PIECES];

	for (int i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){ piece, PIECE };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	if (s->messages)
		CHECK_INT(sendmmsg(s->fd[0], msgs, PIECES, 0), PIECES);
	else
		CHECK_INT(writev(s->fd[0], iov, PIECES), PIECES * PIECE);
	return NULL;
}

/*
 * The number is another file's while the first piece waits: so is none of the others.  more: us for
 * which the call waits on.  Some systems look at a socket without room each 100 ms.
 */
static void pieces(bool messages, useconds_t more)
{
	struct stream s = { .messages = messages };
	static char sink[1 << 16];
	int another[2];
	pthread_t t;
	char c;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s.fd));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, another));
	t = start(writes_pieces, &s);
	/* It has begun when something is there. */
	CHECK_INT(recv(s.fd[1], &c, 1, MSG_PEEK), 1);
	await_others();
	CHECK_INT(dup2(another[0], s.fd[0]), s.fd[0]);
	usleep(more);
	for (long left = PIECES * PIECE, n; left; left -= n) {
		n = read(s.fd[1], sink, sizeof(sink));
		CHECK(n > 0);
	}
	finish(t);
	CHECK_INT(recv(another[1], &c, 1, MSG_DONTWAIT), -1);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(close(s.fd[i]));
		CHECK_OK(close(another[i]));
	}
}

/* ---- many with one descriptor --------------------------------------------------- */

enum { CROWD = 150, CROWDS = 2 };

static struct event begun = EVENT_INIT;

static void *waits_in_crowd(void *arg)
{
	struct epoll_event event;

	event_post(&begun);
	CHECK_INT(epoll_wait((int)(intptr_t)arg, &event, 1, -1), 1);
	return NULL;
}

/* Each goes on, also where the limit cannot be raised to make room for copies. */
static void crowd(void)
{
	struct epoll_event in = { .events = EPOLLIN };
	int instance = epoll_create1(0), counter = eventfd(0, 0);
	struct rlimit limit, old;
	pthread_t t[CROWD];

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &old));
	limit = old;
	limit.rlim_cur = limit.rlim_max = 1024;
	CHECK_OK(epoll_ctl(instance, EPOLL_CTL_ADD, counter, &in));
	for (int i = 0; i < CROWD; i++)
		t[i] = start(waits_in_crowd, (void *)(intptr_t)instance);
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	event_wait(&begun, CROWD);
	/* All are there, but some may have said so just before they begin to wait. */
	await_others();
	CHECK_OK(close(instance));
	settle();
	CHECK_OK(eventfd_write(counter, 7));
	for (int i = 0; i < CROWD; i++)
		finish(t[i]);
	CHECK_OK(close(counter));
}

/* ---- many at once -------------------------------------------------------------- */

enum { PAIRS = 8, ROUNDS = 300 };

struct pair {
	sem_t begin, over;
	int fd[2];
};

static void *receives(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		char c = 0;
		struct iovec iov = { &c, 1 };
		struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
		long n;

		CHECK_OK(sem_wait(&p->begin));
		n = i % 2 ? recvfrom(p->fd[0], &c, 1, 0, (struct sockaddr *)&from, &size) :
			    recvmmsg(p->fd[0], &msg, 1, 0, NULL);
		/* Or too late. */
		if (n < 0)
			CHECK_INT(errno, EBADF);
		else
			CHECK_INT(c, 'x');
		CHECK_OK(sem_post(&p->over));
	}
	return NULL;
}

static void *closes(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < ROUNDS; i++) {
		int s[2];

		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		CHECK_INT(dup2(s[0], p->fd[0]), p->fd[0]);
		CHECK_INT(dup2(s[1], p->fd[1]), p->fd[1]);
		CHECK_OK(close(s[0]));
		CHECK_OK(close(s[1]));
		CHECK_OK(sem_post(&p->begin));
		if (i % 3)
			usleep((useconds_t)(i % 50));
		CHECK_OK(close(p->fd[0]));
		if (write(p->fd[1], "x", 1) < 0)
			CHECK_INT(errno, EPIPE);
		CHECK_OK(close(p->fd[1]));
		CHECK_OK(sem_wait(&p->over));
	}
	return NULL;
}

static void storm(void)
{
	static struct pair pairs[PAIRS];
	pthread_t t[PAIRS][2];

	for (int i = 0; i < PAIRS; i++) {
		/* Their own, so that nobody who comes too late gets another's. */
		pairs[i].fd[0] = 100 + i;
		pairs[i].fd[1] = 150 + i;
		CHECK_OK(sem_init(&pairs[i].begin, 0, 0));
		CHECK_OK(sem_init(&pairs[i].over, 0, 0));
		t[i][0] = start(receives, &pairs[i]);
		t[i][1] = i % 2 ? start(closes, &pairs[i]) : start_affine(closes, &pairs[i]);
	}
	for (int i = 0; i < PAIRS; i++) {
		finish(t[i][0]);
		finish(t[i][1]);
	}
}

/* ---- all others closed, a child ------------------------------------------------- */

struct reader {
	struct event begun;
	int fd[2];
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	char c = 0;

	event_post(&r->begun);
	/* With an address, so that it is readiness that it waits for. */
	return (void *)(intptr_t)(recvfrom(r->fd[0], &c, 1, 0, (struct sockaddr *)&from,
					   &size) == 1 ? c : -1);
}

/* Whatever is closed, not what a call goes on with. */
static void closes_all(bool at_once)
{
	struct reader r = { .begun = EVENT_INIT };
	pid_t pid = fork();
	pthread_t t;
	int status;

	CHECK(pid >= 0);
	if (pid) {
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
		return;
	}
	tcp_pair(r.fd);
	CHECK_INT(dup2(r.fd[1], 0), 0);
	t = start(reads, &r);
	event_wait(&r.begun, 1);
	await_others();
	if (at_once)
		CHECK_OK(close_range(3, ~0U, 0));
	else
		for (int fd = 3; fd < 70000; fd++)
			close(fd);
	CHECK_INT(write(0, "x", 1), 1);
	CHECK_INT((intptr_t)finish(t), 'x');
	_exit(0);
}

/* A child that is made meanwhile has nothing of it. */
static void forks(void)
{
	struct reader r = { .begun = EVENT_INIT };
	struct pollfd p;
	pthread_t t;
	pid_t pid;

	tcp_pair(r.fd);
	t = start(reads, &r);
	event_wait(&r.begun, 1);
	await_others();
	CHECK_OK(close(r.fd[0]));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	CHECK_INT(write(r.fd[1], "x", 1), 1);
	CHECK_INT((intptr_t)finish(t), 'x');
	p = (struct pollfd){ .fd = r.fd[1], .events = POLLIN };
	CHECK_INT(poll(&p, 1, -1), 1);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_OK(close(r.fd[1]));
}

int main(void)
{
	int before = open_files();
	struct rlimit limit, after;

	signal(SIGPIPE, SIG_IGN);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	connection();
	for (int i = 0; i < 4; i++)
		pieces(i % 2, i < 2 ? 0 : 150000);
	storm();
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &after));
	CHECK(after.rlim_cur == limit.rlim_cur && after.rlim_max == limit.rlim_max);
	closes_all(true);
	closes_all(false);
	forks();
	CHECK_INT(open_files(), before);
	for (int i = 0; i < CROWDS; i++)
		crowd();
	return success();
}
