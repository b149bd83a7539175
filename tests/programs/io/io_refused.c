/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_refused.c - sockets that poll reports as ready although the call has to
 * wait.
 */
#include "sockets.h"

#include <sys/uio.h>
#include <sys/un.h>

struct sender {
	int fd, way;
	struct sockaddr_un to;
	socklen_t to_len;
	struct event begun;
};

static void *sends(void *arg)
{
	struct sender *s = arg;
	char text[] = "hello";
	struct iovec iov = { text, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr many = { .msg_hdr = msg };
	long n;

	if (s->to_len)
		many.msg_hdr.msg_name = msg.msg_name = &s->to;
	many.msg_hdr.msg_namelen = msg.msg_namelen = s->to_len;
	event_post(&s->begun);
	switch (s->way) {
	case 0:
		n = sendto(s->fd, text, 5, 0, msg.msg_name, s->to_len);
		break;
	case 1:
		n = sendmsg(s->fd, &msg, 0);
		break;
	case 2:
		n = sendmmsg(s->fd, &many, 1, 0) == 1 ? many.msg_len : 0;
		break;
	default:
		n = write(s->fd, text, 5);
	}
	CHECK_INT(n, 5);
	return NULL;
}

/* The receiver's queue is full: the message waits, without using the CPU, and arrives whole. */
static void full_queue(void)
{
	for (int i = 0; i < 7; i++) {
		struct sender s = { .way = i % 4, .begun = EVENT_INIT };
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		socklen_t size = sizeof(a);
		int in = socket(AF_UNIX, SOCK_DGRAM, 0), last = 1;
		long long cpu;
		char text[8];
		pthread_t t;

		CHECK_OK(bind(in, (struct sockaddr *)&a, sizeof(sa_family_t)));
		CHECK_OK(getsockname(in, (struct sockaddr *)&a, &size));
		s.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		if (i < 3) {
			s.to = a;
			s.to_len = size;
		} else {
			s.way = i - 3;
			CHECK_OK(connect(s.fd, (struct sockaddr *)&a, size));
		}
		while (sendto(s.fd, "x", 1, MSG_DONTWAIT, i < 3 ? (struct sockaddr *)&a : NULL,
			      i < 3 ? size : 0) == 1)
			continue;
		CHECK_INT(errno, EAGAIN);
		t = start(sends, &s);
		event_wait(&s.begun, 1);
		settle();
		cpu = now(CLOCK_PROCESS_CPUTIME_ID);
		usleep(200000);
		CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - cpu < 100 * MS);
		while (last == 1)
			last = (int)recv(in, text, sizeof(text), 0);
		CHECK_INT(last, 5);
		finish(t);
		CHECK_OK(close(in));
		CHECK_OK(close(s.fd));
	}
}

static void *receives(void *arg)
{
	struct sender *s = arg;
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	char text[8];
	struct iovec iov = { text, 5 };
	struct mmsghdr many = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	event_post(&s->begun);
	switch (s->way) {
	case 0:
		CHECK_INT(recvfrom(s->fd, text, 5, 0, (struct sockaddr *)&from, &size), 0);
		break;
	case 1:
		CHECK_INT(recvmmsg(s->fd, &many, 1, 0, NULL), 1);
		CHECK_INT(many.msg_len, 0);
		break;
	default:
		CHECK_INT(recv(s->fd, text, 5, 0), 0);
	}
	return NULL;
}

/* Not connected, it says ENOTCONN, and ends what waits all the same. */
static void shut_datagrams(void)
{
	for (int way = 0; way < 3; way++) {
		struct sender s = { .way = way, .begun = EVENT_INIT };
		struct sockaddr_in a;
		pthread_t t;

		s.fd = bound_socket(SOCK_DGRAM, &a);
		t = start(receives, &s);
		event_wait(&s.begun, 1);
		settle();
		CHECK_ERR(shutdown(s.fd, SHUT_RDWR), ENOTCONN);
		finish(t);
		CHECK_OK(close(s.fd));
	}
}

static void *run(void *arg)
{
	full_queue();
	shut_datagrams();
	return arg;
}

int main(void)
{
	run(NULL);
	finish(start(run, NULL));
	return success();
}
