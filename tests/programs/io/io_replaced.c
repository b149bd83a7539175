/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_replaced.c - a thread waits in a call, another puts another file on its
 * descriptor, or closes it, and sends it a signal at once, as Java closes a socket: the call ends
 * with EINTR; with SA_RESTART it begins again, with what the number names now.  And accept
 * without a number left, which fails before it waits.
 */
#include "sockets.h"

#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum { DUP2, DUP3, CLOSE, WAYS, ROUNDS = 3 };

struct fixture {
	const struct kind *kind;
	sem_t begun;
	int number, other, more[2];
	struct sockaddr_in address;
	long result;
	int error;
};

struct kind {
	const char *name;
	void (*set_up)(struct fixture *f);
	long (*wait)(struct fixture *f);
	/* What it answers for a socket that is shut down for reading, and whether it restarts. */
	int again, restarts;
};

static char page[1 << 16];

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

static void make_listener(struct fixture *f)
{
	f->number = listening_socket(0, &f->address);
	f->other = dup(f->number);
}

static void make_eventfd(struct fixture *f)
{
	f->number = eventfd(0, 0);
	f->other = dup(f->number);
}

static void make_epoll(struct fixture *f)
{
	f->number = epoll_create1(0);
	f->other = dup(f->number);
}

static void fill(int fd)
{
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	for (size_t size = sizeof(page); size; size /= 2)
		while (write(fd, page, size) > 0)
			continue;
	CHECK_OK(fcntl(fd, F_SETFL, 0));
}

static void make_full_pipe(struct fixture *f)
{
	int p[2];

	CHECK_OK(pipe(p));
	f->number = p[1];
	f->other = p[0];
	fill(f->number);
}

static void make_full_stream(struct fixture *f)
{
	make_stream(f);
	fill(f->number);
}

static void make_splice(struct fixture *f)
{
	make_pipe(f);
	CHECK_OK(pipe(f->more));
}

/* Who connects waits: the queue of the listener is full. */
static void make_busy(struct fixture *f)
{
	f->other = bound_socket(SOCK_STREAM, &f->address);
	CHECK_OK(listen(f->other, 0));
	f->more[0] = dial(&f->address);
	f->more[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(f->more[1], (struct sockaddr *)&f->address, sizeof(f->address)))
		CHECK_INT(errno, EINPROGRESS);
	f->number = socket(AF_INET, SOCK_STREAM, 0);
}

static long do_accept(struct fixture *f)
{
	return accept(f->number, NULL, NULL);
}

static long do_read(struct fixture *f)
{
	return read(f->number, page, 8);
}

static long do_recv(struct fixture *f)
{
	return recv(f->number, page, 8, 0);
}

static long do_recvfrom(struct fixture *f)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);

	return recvfrom(f->number, page, 8, 0, (struct sockaddr *)&from, &size);
}

static long do_recvmsg(struct fixture *f)
{
	struct iovec iov = { page, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(f->number, &msg, 0);
}

static long do_recvmmsg(struct fixture *f)
{
	struct iovec iov = { page, 8 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	int n = recvmmsg(f->number, &msg, 1, 0, NULL);

	return n == 1 ? (long)msg.msg_len : n;
}

static long do_write(struct fixture *f)
{
	return write(f->number, page, 4096);
}

static long do_send(struct fixture *f)
{
	return send(f->number, page, 4096, 0);
}

static long do_splice(struct fixture *f)
{
	return splice(f->number, NULL, f->more[1], NULL, 8, 0);
}

static long do_epoll(struct fixture *f)
{
	struct epoll_event event;

	return epoll_wait(f->number, &event, 1, -1);
}

static long do_connect(struct fixture *f)
{
	return connect(f->number, (struct sockaddr *)&f->address, sizeof(f->address));
}

static const struct kind kinds[] = {
	{ "accept", make_listener, do_accept, EINVAL, 1 },
	{ "read pipe", make_pipe, do_read, 0, 1 },
	{ "read socket", make_stream, do_read, 0, 1 },
	{ "read eventfd", make_eventfd, do_read, 0, 1 },
	{ "recv", make_stream, do_recv, 0, 1 },
	{ "recvfrom", make_stream, do_recvfrom, 0, 1 },
	{ "recvmsg", make_stream, do_recvmsg, 0, 1 },
	{ "recvmmsg", make_stream, do_recvmmsg, 0, 1 },
	{ "splice", make_splice, do_splice, 0, 1 },
	{ "write pipe", make_full_pipe, do_write, EPIPE, 1 },
	{ "write socket", make_full_stream, do_write, EPIPE, 1 },
	{ "send", make_full_stream, do_send, EPIPE, 1 },
	{ "epoll_wait", make_epoll, do_epoll, EINVAL, 0 },
	{ "connect", make_busy, do_connect, EINVAL, 1 },
};

static void nothing(int sig)
{
	(void)sig;
}

static void *waits(void *arg)
{
	struct fixture *f = arg;

	CHECK_OK(sem_post(&f->begun));
	f->result = f->kind->wait(f);
	f->error = f->result < 0 ? errno : 0;
	return NULL;
}

static void replace(int number, int way)
{
	int s[2];

	if (way == CLOSE) {
		CHECK_OK(close(number));
		return;
	}
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(shutdown(s[0], SHUT_RD));
	CHECK_OK(close(s[1]));
	CHECK_INT(way == DUP2 ? dup2(s[0], number) : dup3(s[0], number, O_CLOEXEC), number);
	CHECK_OK(close(s[0]));
}

/* Returns the error, 0 if there is none. */
static int replace_under(const struct kind *kind, int way)
{
	struct fixture f = { .kind = kind, .more = { -1, -1 } };
	pthread_t t;

	CHECK_OK(sem_init(&f.begun, 0, 0));
	kind->set_up(&f);
	t = start(waits, &f);
	CHECK_OK(sem_wait(&f.begun));
	await_others();
	replace(f.number, way);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	if (f.result >= 0)
		CHECK_INT(f.result, 0);
	if (way != CLOSE)
		CHECK_OK(close(f.number));
	CHECK_OK(close(f.other));
	for (int i = 0; i < 2 && f.more[i] >= 0; i++)
		CHECK_OK(close(f.more[i]));
	return f.error;
}

static void set_handler(int flags)
{
	const struct sigaction action = { .sa_handler = nothing, .sa_flags = flags };

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
}

static void check(const struct kind *kind, int way, int restart)
{
	const int again = way == CLOSE ? EBADF : kind->again;
	const int expected = restart && kind->restarts ? again : EINTR;
	int error;

	set_handler(restart ? SA_RESTART : 0);
	error = replace_under(kind, way);
	if (error != expected)
		fail(__FILE__, __LINE__, "%s, way %d, restart %d: error %d\n", kind->name, way,
		     restart, error);
}

static void *without_a_number(void *arg)
{
	struct sockaddr_in address;
	int l = listening_socket(0, &address), fds[64], n = 0;
	struct rlimit old, limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &old));
	limit = old;
	limit.rlim_cur = 40;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	while ((fds[n] = dup(l)) >= 0)
		n++;
	CHECK_ERR(accept(l, NULL, NULL), EMFILE);
	CHECK_ERR(accept4(l, NULL, NULL, SOCK_CLOEXEC), EMFILE);
	CHECK_ERR(accept4(l, NULL, NULL, 1), EINVAL);
	while (n)
		CHECK_OK(close(fds[--n]));
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &old));
	CHECK_OK(close(l));
	return arg;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	finish(start(without_a_number, NULL));
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < COUNT(kinds); i++)
			for (int way = 0; way < WAYS; way++)
				for (int restart = 0; restart < 2; restart++)
					check(&kinds[i], way, restart);
	return success();
}
