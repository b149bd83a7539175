/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_timeouts.c - SO_RCVTIMEO and SO_SNDTIMEO: inherited by accept, applied
 * to each call and each message.
 */
#include "sockets.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/uio.h>

/* The kernel counts these in ticks, the one that has begun too: a tick less, of 10 ms at most. */
static void check_waited(long long since, int ms)
{
	CHECK(now(CLOCK_MONOTONIC) >= since + (ms - 10) * MS);
}

static void timeouts(void)
{
	struct sockaddr_in address;
	int listener = listening_socket(0, &address), fd, got, s[2];
	struct msghdr msg = { .msg_iovlen = 1 };
	static char big[1 << 20];
	struct iovec iov = { big, 16 };
	long long t0;
	ssize_t r;

	msg.msg_iov = &iov;
	set_timeout(listener, SO_RCVTIMEO, 30);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(accept(listener, NULL, NULL), EAGAIN);
	check_waited(t0, 30);
	fd = dial(&address);
	got = accept(listener, NULL, NULL);
	CHECK(got >= 0);
	/* Inherited from the listener, set by nobody here. */
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(read(got, big, 1), EAGAIN);
	check_waited(t0, 30);
	close(got);
	close(fd);
	close(listener);

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	set_timeout(s[0], SO_RCVTIMEO, 20);
	for (int way = 0; way < 4; way++) {
		t0 = now(CLOCK_MONOTONIC);
		switch (way) {
		case 0:	CHECK_ERR(recv(s[0], big, 1, 0), EAGAIN); break;
		case 1:	CHECK_ERR(recvmsg(s[0], &msg, 0), EAGAIN); break;
		case 2:	CHECK_ERR(readv(s[0], &iov, 1), EAGAIN); break;
		case 3:	CHECK_ERR(recvfrom(s[0], big, 1, MSG_WAITALL, NULL, NULL),
				  EAGAIN); break;
		}
		check_waited(t0, 20);
	}
	/* Part of what was waited for. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_KEEPS(recv(s[0], big, 10, MSG_WAITALL), 3);
	set_timeout(s[1], SO_SNDTIMEO, 20);
	r = send(s[1], big, sizeof(big), 0);
	CHECK(r > 0 && r < (ssize_t)sizeof(big));
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(send(s[1], big, sizeof(big), 0), EAGAIN);
	check_waited(t0, 20);
	CHECK_ERR(write(s[1], big, sizeof(big)), EAGAIN);
	/* No timeout again: waits for data. */
	set_timeout(s[0], SO_RCVTIMEO, 0);
	CHECK_INT(recv(s[0], big, 100, MSG_WAITALL), 100);
	close(s[0]);
	close(s[1]);
	puts("timeouts");
}

struct sender {
	int socket;
	long long begun[5], ended[5];	/* of each send, from 1 on; 0 is the call that receives */
};

static void *sends_four(void *arg)
{
	struct sender *sender = arg;

	for (int i = 1; i <= 4; i++) {
		usleep(250000);
		sender->begun[i] = now(CLOCK_MONOTONIC);
		CHECK_INT(send(sender->socket, "x", 1, 0), 1);
		sender->ended[i] = now(CLOCK_MONOTONIC);
	}
	return NULL;
}

/* SO_RCVTIMEO is for each message of recvmmsg; a slow machine may let one come too late. */
static void timeout_of_each(void)
{
	struct mmsghdr many[4] = { 0 };
	char text[4];
	struct iovec iov[4];
	struct sender sender = { 0 };
	int s[2], got;
	pthread_t t;

	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ text + i, 1 };
		many[i].msg_hdr.msg_iov = &iov[i];
		many[i].msg_hdr.msg_iovlen = 1;
	}
	set_timeout(s[0], SO_RCVTIMEO, 900);
	sender.socket = s[1];
	sender.begun[0] = now(CLOCK_MONOTONIC);
	t = start(sends_four, &sender);
	got = recvmmsg(s[0], many, 4, 0, NULL);
	finish(t);
	if (got < 0)
		got = 0;
	CHECK(got == 4 || sender.ended[got + 1] - sender.begun[got] >= (900 - 10) * MS);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

static int drained_by_handler;
static _Atomic bool was_interrupted;

static void drain(int sig)
{
	static char page[65536];

	(void)sig;
	while (recv(drained_by_handler, page, sizeof(page), MSG_DONTWAIT) > 0)
		continue;
}

static void *interrupts(void *arg)
{
	/* The first one may come before the call. */
	do {
		settle();
		CHECK_INT(pthread_kill(*(pthread_t *)arg, SIGUSR1), 0);
	} while (!was_interrupted);
	return NULL;
}

/* sendmmsg ends with a message that was sent in part, though there is room for the next one. */
static void part_is_the_last(void)
{
	static char big[8 << 20];
	struct sigaction action = { .sa_handler = drain };
	struct iovec iov[2] = { { big, sizeof(big) }, { big, 16 } };
	struct mmsghdr many[2] = { 0 };
	pthread_t self = pthread_self(), t;
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	for (int i = 0; i < 2; i++) {
		many[i].msg_hdr.msg_iov = &iov[i];
		many[i].msg_hdr.msg_iovlen = 1;
	}
	drained_by_handler = s[1];
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	was_interrupted = false;
	t = start(interrupts, &self);
	CHECK_INT(sendmmsg(s[0], many, 2, 0), 1);
	was_interrupted = true;
	CHECK(many[0].msg_len > 0 && many[0].msg_len < sizeof(big));
	finish(t);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

/* The listener's queue is full until `first` is accepted: attempts go on, and are answered when a packet is sent again. */
static void connects_again(void)
{
	struct sockaddr_in address;
	const struct sockaddr *to = (const struct sockaddr *)&address;
	const int listener = bound_socket(SOCK_STREAM, &address), fd = socket(AF_INET, SOCK_STREAM, 0);
	long long t0;
	int first, got;

	CHECK_OK(listen(listener, 0));
	first = dial(&address);
	CHECK(fd >= 0);
	set_timeout(fd, SO_SNDTIMEO, 30);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(connect(fd, to, sizeof(address)), EINPROGRESS);
	check_waited(t0, 30);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(connect(fd, to, sizeof(address)), EALREADY);
	check_waited(t0, 30);
	got = accept(listener, NULL, NULL);
	CHECK(got >= 0);
	set_timeout(fd, SO_SNDTIMEO, 0);
	CHECK_OK(connect(fd, to, sizeof(address)));
	CHECK_ERR(connect(fd, to, sizeof(address)), EISCONN);
	CHECK_OK(close(got));
	CHECK_OK(close(first));
	CHECK_OK(close(fd));
	CHECK_OK(close(listener));
	puts("connects again");
}

static void *all(void *arg)
{
	timeouts();
	connects_again();
	part_is_the_last();
	timeout_of_each();
	return arg;
}

int main(void)
{
	all(NULL);
	finish(start(all, NULL));
	return success();
}
