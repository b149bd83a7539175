/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io_held.c - a descriptor that another thread closes, or puts another file on,
 * while a call waits with it: the call goes on with the file that it began with.  Only poll and
 * select look at the number again.
 */
#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* expected[] has the same for both ways to close. */
enum { CLOSE, REPLACE, CLOSE_RANGE, WAYS, ATTEMPTS = 8 };

/*
 * What a case works with: number is what the call names and what is closed, other is where its
 * end comes from.
 */
struct fixture {
	const struct kind *kind;
	struct event begun;
	int number, other, more[2];
	long stuffed;
};

struct kind {
	const char *name;
	void (*set_up)(struct fixture *f);
	long (*wait)(struct fixture *f);
	void (*end)(struct fixture *f);
	long expected[2];
};

static char page[1 << 16];

/* ---- files ------------------------------------------------------------------ */

static void make_pipe(struct fixture *f)
{
	int p[2];

	CHECK_OK(pipe(p));
	f->number = p[0];
	f->other = p[1];
}

static void make_stream(struct fixture *f)
{
	int p[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	f->number = p[0];
	f->other = p[1];
}

static int bound(int type, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, type, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0);
	CHECK_OK(bind(fd, (struct sockaddr *)address, size));
	CHECK_OK(getsockname(fd, (struct sockaddr *)address, &size));
	return fd;
}

static void make_datagram(struct fixture *f)
{
	struct sockaddr_in address;

	f->number = bound(SOCK_DGRAM, &address);
	f->other = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_OK(connect(f->other, (struct sockaddr *)&address, sizeof(address)));
}

static void make_tcp(struct fixture *f)
{
	struct sockaddr_in address;
	int l = bound(SOCK_STREAM, &address);

	CHECK_OK(listen(l, 1));
	f->number = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(f->number, (struct sockaddr *)&address, sizeof(address)));
	f->other = accept(l, NULL, NULL);
	CHECK(f->other >= 0);
	CHECK_OK(close(l));
}

static void make_listener(struct fixture *f)
{
	struct sockaddr_in address;

	f->number = bound(SOCK_STREAM, &address);
	CHECK_OK(listen(f->number, 1));
	f->other = socket(AF_INET, SOCK_STREAM, 0);
}

static void make_fifo(struct fixture *f)
{
	char name[] = "/tmp/held-XXXXXX";

	CHECK(mkdtemp(name) != NULL);
	CHECK_OK(rmdir(name));
	CHECK_OK(mkfifo(name, 0600));
	f->number = open(name, O_RDWR);
	f->other = open(name, O_WRONLY);
	CHECK(f->number >= 0 && f->other >= 0);
	CHECK_OK(unlink(name));
}

static void make_eventfd(struct fixture *f)
{
	f->number = eventfd(0, 0);
	f->other = dup(f->number);
	CHECK(f->other >= 0);
}

static void make_epoll(struct fixture *f)
{
	struct epoll_event event = { .events = EPOLLIN };

	f->number = epoll_create1(0);
	f->other = eventfd(0, 0);
	CHECK_OK(epoll_ctl(f->number, EPOLL_CTL_ADD, f->other, &event));
}

/* Until there is no more room. */
static void stuff(struct fixture *f, int fd)
{
	long n;

	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	for (size_t size = sizeof(page); size; size = n < 0 ? size / 2 : size) {
		n = write(fd, page, size);
		f->stuffed += n > 0 ? n : 0;
	}
	CHECK_OK(fcntl(fd, F_SETFL, 0));
}

static void make_full_pipe(struct fixture *f)
{
	int p[2];

	CHECK_OK(pipe(p));
	f->number = p[1];
	f->other = p[0];
	stuff(f, f->number);
}

static void make_full_stream(struct fixture *f)
{
	make_stream(f);
	stuff(f, f->number);
}

static void make_full_tcp(struct fixture *f)
{
	make_tcp(f);
	/* Until what is on its way has arrived, too. */
	for (long before = -1; f->stuffed != before; usleep(5000)) {
		before = f->stuffed;
		stuff(f, f->number);
	}
}

static void make_splice_in(struct fixture *f)
{
	make_pipe(f);
	CHECK_OK(pipe(f->more));
}

static void make_splice_out(struct fixture *f)
{
	make_full_pipe(f);
	CHECK_OK(pipe(f->more));
	CHECK_INT(write(f->more[1], page, 4096), 4096);
}

/* ---- calls ------------------------------------------------------------------- */

static long do_read(struct fixture *f)
{
	char c = 0;
	long n = read(f->number, &c, 1);

	return n < 0 ? n : c;
}

static long do_recv(struct fixture *f)
{
	char c = 0;
	long n = recv(f->number, &c, 1, 0);

	return n < 0 ? n : c;
}

static long do_recvfrom(struct fixture *f)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	char c = 0;
	long n = recvfrom(f->number, &c, 1, 0, (struct sockaddr *)&from, &size);

	return n < 0 ? n : c;
}

static long do_recvmsg(struct fixture *f)
{
	char c = 0;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	long n = recvmsg(f->number, &msg, 0);

	return n < 0 ? n : c;
}

static long do_recvmmsg(struct fixture *f)
{
	char c = 0;
	struct iovec iov = { &c, 1 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	long n = recvmmsg(f->number, &msg, 1, 0, NULL);

	return n < 0 ? n : c;
}

static long do_eventfd(struct fixture *f)
{
	uint64_t count = 0;
	long n = read(f->number, &count, sizeof(count));

	return n < 0 ? n : (long)count;
}

static long do_accept(struct fixture *f)
{
	int fd = accept(f->number, NULL, NULL);

	return fd < 0 ? fd : close(fd);
}

static long do_epoll(struct fixture *f)
{
	struct epoll_event event;

	return epoll_wait(f->number, &event, 1, -1);
}

static long do_poll(struct fixture *f)
{
	struct pollfd p = { .fd = f->number, .events = POLLIN };
	long n = poll(&p, 1, 10000);

	return n < 0 ? n : n * 1000 + p.revents;
}

static long do_select(struct fixture *f)
{
	struct timeval timeout = { 10, 0 };
	fd_set set, none;
	long n;

	FD_ZERO(&set);
	FD_ZERO(&none);
	FD_SET(f->number, &set);
	n = select(f->number + 1, &set, &none, NULL, &timeout);
	return n < 0 ? n : n * 1000 + FD_ISSET(f->number, &set);
}

static long do_write(struct fixture *f)
{
	return write(f->number, page, sizeof(page));
}

static long do_writev(struct fixture *f)
{
	struct iovec iov[2] = { { page, 1000 }, { page, sizeof(page) - 1000 } };

	return writev(f->number, iov, 2);
}

static long do_send(struct fixture *f)
{
	return send(f->number, page, sizeof(page), 0);
}

static long do_sendto(struct fixture *f)
{
	const struct sockaddr_in nobody = { .sin_family = AF_INET };

	return sendto(f->number, page, sizeof(page), 0, (const struct sockaddr *)&nobody,
		      sizeof(nobody));
}

static long do_sendmmsg(struct fixture *f)
{
	struct iovec iov = { page, sizeof(page) };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	long n = sendmmsg(f->number, &msg, 1, 0);

	return n < 0 ? n : msg.msg_len;
}

/* What has come to the other pipe, if n says that something has. */
static long moved(struct fixture *f, long n)
{
	char c = 0;

	if (n < 0)
		return n;
	CHECK_INT(read(f->more[0], &c, 1), 1);
	return c;
}

static long do_splice_in(struct fixture *f)
{
	return moved(f, splice(f->number, NULL, f->more[1], NULL, 1, 0));
}

static long do_tee(struct fixture *f)
{
	return moved(f, tee(f->number, f->more[1], 1, 0));
}

static long do_splice_out(struct fixture *f)
{
	return splice(f->more[0], NULL, f->number, NULL, 4096, 0);
}

static long do_vmsplice(struct fixture *f)
{
	struct iovec iov = { page, 4096 };

	return vmsplice(f->number, &iov, 1, 0);
}

/* ---- what ends them ---------------------------------------------------------- */

static void put(struct fixture *f)
{
	long n = write(f->other, "x", 1);

	/* For who came too late there is nobody to write to. */
	if (n < 0)
		CHECK(errno == EPIPE || errno == ECONNREFUSED);
}

static void count(struct fixture *f)
{
	const uint64_t seven = 7;

	CHECK_INT(write(f->other, &seven, sizeof(seven)), sizeof(seven));
}

static void call(struct fixture *f)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	/* The number is another file's now: the address is kept elsewhere. */
	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = (in_port_t)f->stuffed };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(f->other, (struct sockaddr *)&address, size))
		CHECK_INT(errno, ECONNREFUSED);
}

static void make_known_listener(struct fixture *f)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	make_listener(f);
	CHECK_OK(getsockname(f->number, (struct sockaddr *)&address, &size));
	f->stuffed = address.sin_port;
}

static void drain(struct fixture *f)
{
	static char sink[1 << 16];
	long n;

	for (; f->stuffed > 0; f->stuffed -= n) {
		n = read(f->other, sink, f->stuffed < (long)sizeof(sink) ? (size_t)f->stuffed :
									   sizeof(sink));
		CHECK(n > 0);
	}
}

/* What the call has sent is there, and no more. */
static bool arrived(struct fixture *f, long expected)
{
	static char sink[1 << 16];
	struct pollfd p = { .fd = f->other, .events = POLLIN };
	long n;

	while (expected > 0 && poll(&p, 1, 300) > 0) {
		n = read(f->other, sink, sizeof(sink));
		if (n <= 0)
			break;
		expected -= n;
	}
	return !expected;
}

static const struct kind kinds[] = {
	{ "read pipe", make_pipe, do_read, put, { 'x', 'x' } },
	{ "read socket", make_stream, do_read, put, { 'x', 'x' } },
	{ "read FIFO", make_fifo, do_read, put, { 'x', 'x' } },
	{ "read eventfd", make_eventfd, do_eventfd, count, { 7, 7 } },
	{ "recv", make_tcp, do_recv, put, { 'x', 'x' } },
	{ "recvfrom", make_datagram, do_recvfrom, put, { 'x', 'x' } },
	{ "recvfrom stream", make_tcp, do_recvfrom, put, { 'x', 'x' } },
	{ "recvmsg", make_datagram, do_recvmsg, put, { 'x', 'x' } },
	{ "recvmmsg", make_datagram, do_recvmmsg, put, { 'x', 'x' } },
	{ "accept", make_known_listener, do_accept, call, { 0, 0 } },
	{ "write pipe", make_full_pipe, do_write, drain, { sizeof(page), sizeof(page) } },
	{ "write socket", make_full_stream, do_write, drain, { sizeof(page), sizeof(page) } },
	{ "writev pipe", make_full_pipe, do_writev, drain, { sizeof(page), sizeof(page) } },
	{ "writev socket", make_full_stream, do_writev, drain, { sizeof(page), sizeof(page) } },
	{ "send", make_full_stream, do_send, drain, { sizeof(page), sizeof(page) } },
	{ "sendto", make_full_tcp, do_sendto, drain, { sizeof(page), sizeof(page) } },
	{ "sendmmsg", make_full_stream, do_sendmmsg, drain, { sizeof(page), sizeof(page) } },
	{ "splice from", make_splice_in, do_splice_in, put, { 'x', 'x' } },
	{ "splice to", make_splice_out, do_splice_out, drain, { 4096, 4096 } },
	{ "tee", make_splice_in, do_tee, put, { 'x', 'x' } },
	{ "vmsplice", make_full_pipe, do_vmsplice, drain, { 4096, 4096 } },
	{ "epoll_wait", make_epoll, do_epoll, count, { 1, 1 } },
	{ "poll", make_stream, do_poll, put, { 1000 + POLLNVAL, 1000 + POLLIN } },
	{ "select", make_stream, do_select, put, { 1001, 1001 } },
};

static void *calls(void *arg)
{
	struct fixture *f = arg;

	event_post(&f->begun);
	return (void *)f->kind->wait(f);
}

/* Returns false if the call may have come too late. */
static bool attempt(const struct kind *kind, int way, int patience)
{
	struct fixture f = { .kind = kind, .begun = EVENT_INIT, .more = { -1, -1 } };
	int zero = open("/dev/zero", O_RDWR);
	pthread_t t;
	const long expected = kind->expected[way == REPLACE];
	bool right;

	kind->set_up(&f);
	t = start(calls, &f);
	event_wait(&f.begun, 1);
	usleep((useconds_t)patience);
	if (way == CLOSE)
		CHECK_OK(close(f.number));
	else if (way == CLOSE_RANGE)
		CHECK_OK(close_range((unsigned)f.number, (unsigned)f.number, 0));
	else
		CHECK_INT(dup2(zero, f.number), f.number);
	kind->end(&f);
	right = (long)finish(t) == expected;
	if (right && kind->end == drain)
		right = arrived(&f, expected);
	if (way == REPLACE)
		CHECK_OK(close(f.number));
	CHECK_OK(close(f.other));
	CHECK_OK(close(zero));
	for (int i = 0; i < 2 && f.more[i] >= 0; i++)
		CHECK_OK(close(f.more[i]));
	return right;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

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
	struct fixture f = { .more = { -1, -1 } };
	int l = bound(SOCK_STREAM, &a.address), first, second, taken;
	pthread_t t;
	char c;

	CHECK_OK(listen(l, 0));
	first = socket(AF_INET, SOCK_STREAM, 0);
	second = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	a.number = taken = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(first, (struct sockaddr *)&a.address, sizeof(a.address)));
	if (connect(second, (struct sockaddr *)&a.address, sizeof(a.address)))
		CHECK_INT(errno, EINPROGRESS);
	make_tcp(&f);
	t = start(connects, &a);
	event_wait(&a.begun, 1);
	usleep(50000);
	CHECK_INT(dup2(f.number, taken), taken);
	CHECK_OK(close(f.number));
	/* Its next attempt, after a second, is refused. */
	CHECK_OK(close(l));
	finish(t);
	CHECK_INT(write(f.other, "c", 1), 1);
	CHECK_INT(read(taken, &c, 1), 1);
	CHECK_INT(c, 'c');
	CHECK_OK(close(taken));
	CHECK_OK(close(f.other));
	CHECK_OK(close(first));
	CHECK_OK(close(second));
}

/* ---- what is sent in pieces ---------------------------------------------------- */

enum { PIECES = 3, PIECE = 1 << 20 };

static void *writes_pieces(void *arg)
{
	static char piece[PIECE];
	struct fixture *f = arg;
	struct mmsghdr msgs[PIECES] = { 0 };
	struct iovec iov[PIECES];

	for (int i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){ piece, PIECE };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	event_post(&f->begun);
	if (f->stuffed)
		CHECK_INT(sendmmsg(f->number, msgs, PIECES, 0), PIECES);
	else
		CHECK_INT(writev(f->number, iov, PIECES), PIECES * PIECE);
	return NULL;
}

/* The number is another file's while the first piece waits: so is none of the others. */
static void pieces(bool messages)
{
	struct fixture f = { .begun = EVENT_INIT, .stuffed = messages }, g = { .more = { -1, -1 } };
	static char sink[1 << 16];
	pthread_t t;
	char c;

	make_stream(&f);
	make_stream(&g);
	t = start(writes_pieces, &f);
	event_wait(&f.begun, 1);
	/* It has begun when something is there, and waits soon after. */
	CHECK_INT(recv(f.other, &c, 1, MSG_PEEK), 1);
	settle();
	CHECK_INT(dup2(g.number, f.number), f.number);
	for (long left = PIECES * PIECE, n; left; left -= n) {
		n = read(f.other, sink, sizeof(sink));
		CHECK(n > 0);
	}
	finish(t);
	CHECK_INT(recv(g.other, &c, 1, MSG_DONTWAIT), -1);
	CHECK_OK(close(f.number));
	CHECK_OK(close(f.other));
	CHECK_OK(close(g.number));
	CHECK_OK(close(g.other));
}

/* ---- many with one descriptor --------------------------------------------------- */

enum { CROWD = 150 };

static void *waits_in_crowd(void *arg)
{
	struct fixture *f = arg;

	event_post(&f->begun);
	CHECK_INT(do_epoll(f), 1);
	return NULL;
}

/* Each goes on, also where the limit cannot be raised to make room for copies. */
static void crowd(void)
{
	struct fixture f = { .begun = EVENT_INIT };
	struct rlimit limit, old;
	pthread_t t[CROWD];

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &old));
	limit = old;
	limit.rlim_cur = limit.rlim_max = 1024;
	make_epoll(&f);
	for (int i = 0; i < CROWD; i++)
		t[i] = start(waits_in_crowd, &f);
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	event_wait(&f.begun, CROWD);
	settle();
	CHECK_OK(close(f.number));
	settle();
	count(&f);
	for (int i = 0; i < CROWD; i++)
		finish(t[i]);
	CHECK_OK(close(f.other));
}

/* ---- cancellation ------------------------------------------------------------ */

/* Cancelled, the call lets go of the file as well: the other end sees it. */
static void cancelled(const struct kind *kind)
{
	struct fixture f = { .kind = kind, .begun = EVENT_INIT, .more = { -1, -1 } };
	struct pollfd p;
	pthread_t t;

	kind->set_up(&f);
	t = start(calls, &f);
	event_wait(&f.begun, 1);
	settle();
	CHECK_OK(close(f.number));
	CHECK_OK(pthread_cancel(t));
	finish(t);
	p = (struct pollfd){ .fd = f.other, .events = POLLIN };
	do
		CHECK_INT(poll(&p, 1, 2000), 1);
	while (read(f.other, page, sizeof(page)) > 0);
	CHECK_OK(close(f.other));
	for (int i = 0; i < 2 && f.more[i] >= 0; i++)
		CHECK_OK(close(f.more[i]));
}

/* ---- many at once -------------------------------------------------------------- */

enum { PAIRS = 8, ROUNDS = 300 };

struct pair {
	sem_t begin, over;
	struct fixture f;
};

static void *receives(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < ROUNDS; i++) {
		long got;

		CHECK_OK(sem_wait(&p->begin));
		got = i % 2 ? do_recvfrom(&p->f) : do_recvmmsg(&p->f);
		/* Or too late. */
		if (got != 'x')
			CHECK_INT(errno, EBADF);
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
		CHECK_INT(dup2(s[0], p->f.number), p->f.number);
		CHECK_INT(dup2(s[1], p->f.other), p->f.other);
		CHECK_OK(close(s[0]));
		CHECK_OK(close(s[1]));
		CHECK_OK(sem_post(&p->begin));
		if (i % 3)
			usleep((useconds_t)(i % 50));
		CHECK_OK(close(p->f.number));
		if (write(p->f.other, "x", 1) < 0)
			CHECK_INT(errno, EPIPE);
		CHECK_OK(close(p->f.other));
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
		pairs[i].f.number = 100 + i;
		pairs[i].f.other = 150 + i;
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

/* Whatever is closed, not what a call goes on with. */
static void closes_all(bool at_once)
{
	struct fixture f = { .kind = &kinds[6], .begun = EVENT_INIT, .more = { -1, -1 } };
	pid_t pid = fork();
	int status;
	pthread_t t;

	CHECK(pid >= 0);
	if (pid) {
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
		return;
	}
	f.kind->set_up(&f);
	CHECK_INT(dup2(f.other, 0), 0);
	f.other = 0;
	for (int left = ATTEMPTS;; left--) {
		f.begun.count = 0;
		t = start(calls, &f);
		event_wait(&f.begun, 1);
		usleep(5000);
		if (at_once)
			CHECK_OK(close_range(3, ~0U, 0));
		else
			for (int fd = 3; fd < 70000; fd++)
				close(fd);
		put(&f);
		if ((long)finish(t) == 'x')
			_exit(0);
		CHECK(left > 0);
		f.kind->set_up(&f);
		CHECK_INT(dup2(f.other, 0), 0);
		f.other = 0;
	}
}

/* A child that is made meanwhile has nothing of it. */
static void forks(void)
{
	struct fixture f = { .kind = &kinds[6], .begun = EVENT_INIT, .more = { -1, -1 } };
	struct pollfd p;
	pthread_t t;
	pid_t pid;

	f.kind->set_up(&f);
	t = start(calls, &f);
	event_wait(&f.begun, 1);
	usleep(5000);
	CHECK_OK(close(f.number));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	put(&f);
	finish(t);
	p = (struct pollfd){ .fd = f.other, .events = POLLIN };
	CHECK_INT(poll(&p, 1, 5000), 1);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_OK(close(f.other));
}

int main(void)
{
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	int before = open_files();
	struct rlimit limit, after;

	signal(SIGPIPE, SIG_IGN);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	for (size_t i = 0; i < n; i++) {
		for (int way = 0; way < WAYS; way++) {
			int patience = 2000, left = ATTEMPTS;

			for (; left && !attempt(&kinds[i], way, patience); left--)
				patience *= 2;
			if (!left)
				fail(__FILE__, __LINE__, "%s, %s: another file's answer\n",
				     kinds[i].name, way == REPLACE ? "replaced" : "closed");
		}
		if (kinds[i].end == drain || kinds[i].set_up == make_stream)
			cancelled(&kinds[i]);
	}
	connection();
	pieces(false);
	pieces(true);
	storm();
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &after));
	CHECK(after.rlim_cur == limit.rlim_cur && after.rlim_max == limit.rlim_max);
	closes_all(true);
	closes_all(false);
	forks();
	CHECK_INT(open_files(), before);
	crowd();
	return success();
}
