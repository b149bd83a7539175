/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_low_water.c - SO_RCVLOWAT: a call that receives waits until so much is there,
 * or all that it asks for.  MSG_WAITALL: it waits for all that it asks for.
 */
#include "receiver.h"

#include <sys/ioctl.h>

enum { LEAST = 10 };

static int flags;		/* of calls that have flags */

static void set_low_water(int fd, int n)
{
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n)));
}

static ssize_t receive_now(enum way way, int fd)
{
	struct receiver r = { .way = way, .fd = fd, .flags = flags, .first = 1, .n = MOST };

	return receive(&r);
}

/*
 * Bytes come in two parts, the second while the call waits, or the end of the connection.  Returns how many
 * the call has received of at most n.
 */
static ssize_t receive_parts(enum way way, int from, int to, size_t n, size_t first, size_t second)
{
	struct receiver r = { .way = way, .fd = from, .flags = flags, .first = 1, .n = n };
	char bytes[MOST];
	pthread_t t;

	for (int i = 0; i < MOST; i++)
		bytes[i] = (char)i;
	if (first)
		CHECK_INT(write(to, bytes, first), first);
	t = start_receiver(&r);
	if (second)
		CHECK_INT(write(to, bytes + first, second), second);
	else
		CHECK_OK(shutdown(to, SHUT_WR));
	finish(t);
	for (ssize_t i = 0; i < r.got; i++)
		CHECK_INT(r.buf[i], i);
	return r.got;
}

static void unix_sockets(void)
{
	char buf[MOST];
	int s[2], copy;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	copy = dup(s[0]);
	CHECK(copy >= 0);
	/* Both are known before. */
	for (int i = 0; i < 2; i++) {
		CHECK_INT(write(s[1], "x", 1), 1);
		CHECK_INT(recv(i ? copy : s[0], buf, MOST, 0), 1);
	}
	set_low_water(s[0], LEAST);
	for (int way = 0; way < WAYS; way++) {
		CHECK_INT(receive_parts((enum way)way, copy, s[1], MOST, 0, LEAST), LEAST);
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], MOST, 4, LEAST - 4), LEAST);
		CHECK_INT(receive_parts((enum way)way, copy, s[1], MOST, 4, MOST - 4), MOST);
		/* All that is asked for is enough. */
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], 5, 3, 2), 5);
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], LEAST, 3, LEAST - 3), LEAST);
	}
	/* A call that does not wait takes what there is. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_INT(recv(s[0], buf, MOST, MSG_DONTWAIT), 3);
	CHECK_OK(fcntl(s[0], F_SETFL, O_NONBLOCK));
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_INT(read(copy, buf, MOST), 3);
	CHECK_OK(fcntl(s[0], F_SETFL, 0));
	/* So does one whose time is over. */
	set_timeout(s[0], SO_RCVTIMEO, 20);
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_INT(recv(s[0], buf, MOST, 0), 3);
	CHECK_ERR(recv(s[0], buf, MOST, 0), EAGAIN);
	set_timeout(s[0], SO_RCVTIMEO, 0);
	set_low_water(copy, 1);
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_INT(recv(s[0], buf, MOST, 0), 3);
	set_low_water(copy, LEAST);
	CHECK_INT(receive_parts(RECV, s[0], s[1], MOST, 3, 0), 3);
	CHECK_OK(close(copy));
	close_pair(s);
	puts("Unix");
}

static void internet_sockets(void)
{
	struct sockaddr_in address;
	int listener = listening_socket(0, &address), s[2], p[2], there;

	set_low_water(listener, LEAST);
	s[1] = dial(&address);
	s[0] = accept(listener, NULL, NULL);
	CHECK(s[0] >= 0);
	/* TCP wakes nobody for less than that, even if some has been taken. */
	for (int way = 0; way < WAYS; way++) {
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], MOST, 0, LEAST), LEAST);
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], MOST, 4, MOST - 4), MOST);
	}
	/* What is there is spliced. */
	CHECK_OK(pipe(p));
	CHECK_INT(write(s[1], "abc", 3), 3);
	do
		CHECK_OK(ioctl(s[0], FIONREAD, &there));
	while (there < 3);
	CHECK_INT(splice(s[0], NULL, p[1], NULL, MOST, 0), 3);
	CHECK_INT(receive_parts(RECV, s[0], s[1], MOST, 3, 0), 3);
	close_pair(p);
	close_pair(s);
	CHECK_OK(close(listener));
	puts("TCP");
}

static void connect_pair(int tcp, int s[2])
{
	int ends[2];

	if (tcp)
		tcp_pair(ends);
	else
		make_pair(SOCKET, ends);
	/* The end that has been accepted receives. */
	s[0] = ends[1];
	s[1] = ends[0];
}

/* The other side sends the rest and closes with unread bytes, which is an error: that comes after the bytes. */
static void broken(int tcp)
{
	struct receiver r = { .flags = MSG_WAITALL, .first = 1, .n = 8 };
	pthread_t t;
	int s[2];

	for (int way = 0; way < WAYS; way++) {
		if (way == READ || way == READV)
			continue;
		connect_pair(tcp, s);
		r.way = (enum way)way;
		r.fd = s[0];
		CHECK_INT(write(s[0], "unread", 6), 6);
		CHECK_INT(write(s[1], "abc", 3), 3);
		t = start_receiver(&r);
		CHECK_INT(write(s[1], "defgh", 5), 5);
		CHECK_OK(close(s[1]));
		finish(t);
		CHECK_INT(r.got, 8);
		CHECK_ERR(recv(s[0], r.buf, 1, 0), ECONNRESET);
		CHECK_OK(close(s[0]));
	}
	puts("broken");
}

/* Several messages: each gets all that it has room for. */
static void *receives_two(void *arg)
{
	char buf[MOST];
	struct iovec iov[3] = { { buf, 1 }, { buf + 1, 9 }, { buf + 10, 5 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 2 } },
				       { .msg_hdr = { .msg_iov = iov + 2, .msg_iovlen = 1 } } };

	CHECK_INT(recvmmsg(*(const int *)arg, messages, 2, MSG_WAITALL, NULL), 2);
	CHECK_INT(messages[0].msg_len, 10);
	CHECK_INT(messages[1].msg_len, 5);
	CHECK_OK(memcmp(buf, "0123456789abcde", 15));
	return NULL;
}

static void whole(int tcp)
{
	pthread_t t;
	int s[2];

	for (int way = 0; way < WAYS; way++) {
		if (way == READ || way == READV)
			continue;
		connect_pair(tcp, s);
		flags = MSG_WAITALL;
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], MOST, 4, MOST - 4), MOST);
		/* Not after a timeout, or the end. */
		set_timeout(s[0], SO_RCVTIMEO, 50);
		CHECK_INT(write(s[1], "abc", 3), 3);
		CHECK_INT(receive_now((enum way)way, s[0]), 3);
		set_timeout(s[0], SO_RCVTIMEO, 0);
		flags = MSG_WAITALL | MSG_PEEK;
		CHECK_INT(write(s[1], (char[MOST]){ 0 }, MOST), MOST);
		CHECK_INT(receive_now((enum way)way, s[0]), MOST);
		flags = MSG_WAITALL;
		CHECK_INT(receive_now((enum way)way, s[0]), MOST);
		CHECK_INT(receive_parts((enum way)way, s[0], s[1], MOST, 3, 0), 3);
		close_pair(s);
	}
	flags = 0;
	connect_pair(tcp, s);
	t = start(receives_two, &s[0]);
	for (int i = 0; i < 15; i++) {
		usleep(200);
		CHECK_INT(write(s[1], &"0123456789abcde"[i], 1), 1);
	}
	finish(t);
	close_pair(s);
	puts("whole");
}

static void *all(void *arg)
{
	unix_sockets();
	internet_sockets();
	return arg;
}

static void *all_whole(void *arg)
{
	whole(0);
	whole(1);
	broken(0);
	broken(1);
	return arg;
}

int main(void)
{
	finish(start(all, NULL));
	finish(start(all_whole, NULL));
	all(NULL);
	return success();
}
