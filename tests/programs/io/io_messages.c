/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_messages.c - recvmmsg and sendmmsg are one call each: what becomes of an
 * error after the first message, and of the time limit.
 */
#include "sockets.h"

#include <sys/ioctl.h>

enum { MESSAGES = 3 };

struct batch {
	struct mmsghdr headers[MESSAGES];
	struct iovec iov[MESSAGES];
	char text[MESSAGES][8];
	int fd, flags, result, error;
	unsigned count;
	struct timespec *limit;
};

static void prepare(struct batch *b, int fd)
{
	memset(b, 0, sizeof(*b));
	b->fd = fd;
	b->count = MESSAGES;
	for (int i = 0; i < MESSAGES; i++) {
		b->iov[i] = (struct iovec){ b->text[i], sizeof(b->text[i]) };
		b->headers[i].msg_hdr.msg_iov = &b->iov[i];
		b->headers[i].msg_hdr.msg_iovlen = 1;
	}
}

static void *receives(void *arg)
{
	struct batch *b = arg;

	b->result = recvmmsg(b->fd, b->headers, b->count, b->flags, b->limit);
	b->error = b->result < 0 ? errno : 0;
	return NULL;
}

static void receive(struct batch *b)
{
	finish(start(receives, b));
}

/* Two UDP sockets, each connected to the other. */
static void make_udp(int s[2])
{
	struct sockaddr_in a[2];

	for (int i = 0; i < 2; i++)
		s[i] = bound_socket(SOCK_DGRAM, &a[i]);
	for (int i = 0; i < 2; i++)
		CHECK_OK(connect(s[i], (struct sockaddr *)&a[1 - i], sizeof(a[0])));
}

static pthread_t start_receiving(struct batch *b, int s[2])
{
	make_udp(s);
	prepare(b, s[0]);
	return start(receives, b);
}

static void end(const int s[2])
{
	for (int i = 0; i < 2; i++)
		if (s[i] >= 0)
			CHECK_OK(close(s[i]));
}

static void send_one(int fd)
{
	CHECK_INT(send(fd, "hello", 5, 0), 5);
}

static void await_taken(int fd)
{
	int n = 1;

	do {
		usleep(1000);
		CHECK_OK(ioctl(fd, FIONREAD, &n));
	} while (n);
}

/* The peer goes while the call waits for the second message. */
static void keeps_error(void)
{
	struct batch b;
	pthread_t t;
	int s[2];

	t = start_receiving(&b, s);
	send_one(s[1]);
	await_taken(s[0]);
	CHECK_OK(close(s[1]));
	s[1] = -1;
	CHECK_INT(send(s[0], "x", 1, 0), 1);
	finish(t);
	CHECK_INT(b.result, 1);
	CHECK_INT(b.headers[0].msg_len, 5);
	CHECK_ERR(recv(s[0], b.text[0], 8, MSG_DONTWAIT), ECONNREFUSED);
	CHECK_ERR(recv(s[0], b.text[0], 8, MSG_DONTWAIT), EAGAIN);
	end(s);
}

/* The second message has no memory. */
static void keeps_fault(void)
{
	struct batch b;
	int s[2];

	make_udp(s);
	send_one(s[1]);
	send_one(s[1]);
	prepare(&b, s[0]);
	b.iov[1].iov_base = (void *)16;
	receive(&b);
	CHECK_INT(b.result, 1);
	CHECK_ERR(recv(s[0], b.text[0], 8, MSG_DONTWAIT), EFAULT);
	end(s);
}

/* They come one by one. */
static void gathers(void)
{
	struct batch b;
	pthread_t t;
	int s[2];

	t = start_receiving(&b, s);
	for (int i = 0; i < MESSAGES; i++) {
		send_one(s[1]);
		await_taken(s[0]);
	}
	finish(t);
	CHECK_INT(b.result, MESSAGES);
	for (int i = 0; i < MESSAGES; i++)
		CHECK_INT(b.headers[i].msg_len, 5);
	/* What is there, and no more. */
	send_one(s[1]);
	send_one(s[1]);
	prepare(&b, s[0]);
	b.flags = MSG_WAITFORONE;
	receive(&b);
	CHECK_INT(b.result, 2);
	prepare(&b, s[0]);
	b.count = 0;
	receive(&b);
	CHECK_INT(b.result, 0);
	end(s);
}

static void limits(void)
{
	struct timespec none = { 0, 0 }, long_time = { 1000, 0 }, bad = { 0, -1 };
	struct batch b;
	int s[2];

	make_udp(s);
	for (int i = 0; i < 4; i++)
		send_one(s[1]);
	prepare(&b, s[0]);
	b.limit = &none;
	receive(&b);
	CHECK_INT(b.result, 1);
	CHECK(!none.tv_sec && !none.tv_nsec);
	prepare(&b, s[0]);
	b.limit = &long_time;
	receive(&b);
	CHECK_INT(b.result, MESSAGES);
	CHECK(long_time.tv_sec < 1000 && long_time.tv_sec > 0);
	prepare(&b, s[0]);
	b.limit = &bad;
	receive(&b);
	CHECK_INT(b.result, -1);
	CHECK_INT(b.error, EINVAL);
	prepare(&b, s[0]);
	b.limit = (struct timespec *)16;
	receive(&b);
	CHECK_INT(b.result, -1);
	CHECK_INT(b.error, EFAULT);
	/* Nothing comes within the socket's own time. */
	set_timeout(s[0], SO_RCVTIMEO, 10);
	prepare(&b, s[0]);
	receive(&b);
	CHECK_INT(b.result, -1);
	CHECK_INT(b.error, EAGAIN);
	send_one(s[1]);
	prepare(&b, s[0]);
	receive(&b);
	CHECK_INT(b.result, 1);
	end(s);
}

static void *sends(void *arg)
{
	struct batch *b = arg;

	b->result = sendmmsg(b->fd, b->headers, b->count, 0);
	b->error = b->result < 0 ? errno : 0;
	return NULL;
}

/* Nothing is kept where sending fails after the first message. */
static void forgets(void)
{
	struct batch b;
	char text[8];
	int s[2];

	make_udp(s);
	prepare(&b, s[0]);
	b.iov[1].iov_base = (void *)16;
	finish(start(sends, &b));
	CHECK_INT(b.result, 1);
	CHECK_INT(b.headers[0].msg_len, 8);
	CHECK_INT(recv(s[1], text, 8, 0), 8);
	send_one(s[0]);
	CHECK_INT(recv(s[1], text, 8, 0), 5);
	CHECK_ERR(recv(s[0], text, 8, MSG_DONTWAIT), EAGAIN);
	end(s);
}

int main(void)
{
	keeps_error();
	keeps_fault();
	gathers();
	limits();
	forgets();
	return success();
}
