/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/held.h - files of all kinds, and calls that wait with them.
 */
#ifndef HELD_H
#define HELD_H

#include "sockets.h"

#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

/*
 * What a case works with: number is what the call names and what is closed, other is where its
 * end comes from.
 */
struct fixture {
	const struct kind *kind;
	struct event begun;
	int number, other, more[2];
	long stuffed;
	struct sockaddr_in address;	/* of a listener: its number will be another file's */
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

static void make_datagram(struct fixture *f)
{
	struct sockaddr_in address;

	f->number = bound_socket(SOCK_DGRAM, &address);
	f->other = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_OK(connect(f->other, (struct sockaddr *)&address, sizeof(address)));
}

static void make_tcp(struct fixture *f)
{
	int p[2];

	tcp_pair(p);
	f->number = p[0];
	f->other = p[1];
}

static void make_listener(struct fixture *f)
{
	f->number = listening_socket(0, &f->address);
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

/* How many of two bytes have come: those that put_twice() sends. */
static long do_recv_whole(struct fixture *f)
{
	char c[2] = { 0, 0 };
	long n = recv(f->number, c, sizeof(c), MSG_WAITALL);

	return n == 2 && (c[0] != 'x' || c[1] != 'x') ? -1 : n;
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

#endif
