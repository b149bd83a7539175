/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_moved.c - a thread is cancelled in a call that has moved a part of its
 * data: the call returns the count, and the next one acts on the cancellation.  Before version 2.41
 * glibc may end the thread in that call; with the argument "strict" that is a failure, too
 * (tests/scripts/runtime/cancel_race.sh).
 */
#include "sockets.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum way { WRITE, WRITEV, SEND, SENDMSG, SENDMMSG, SPLICE, WAYS };
enum line { A_PIPE, A_FIFO, A_UNIX, A_TCP, LINES };
enum { BIG = 8 << 20, ROUNDS = 100 };

static int strict;
static char big[BIG];
static struct {
	int fd, from;
	enum way way;
	_Atomic long moved;		/* bytes, as the calls have answered; -1: none has */
} mover;

/* line[0] is read, line[1] written. */
static void make_line(enum line line, int fd[2])
{
	char name[] = "/tmp/check-XXXXXX", path[64];

	switch (line) {
	case A_PIPE: CHECK_OK(pipe(fd)); break;
	case A_UNIX: CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd)); break;
	case A_TCP: tcp_pair(fd); break;
	default:
		CHECK(mkdtemp(name));
		snprintf(path, sizeof(path), "%s/fifo", name);
		CHECK_OK(mkfifo(path, 0600));
		fd[0] = open(path, O_RDWR);
		fd[1] = open(path, O_WRONLY);
		CHECK(fd[0] >= 0 && fd[1] >= 0);
		CHECK_OK(unlink(path));
		CHECK_OK(rmdir(name));
	}
}

static int waiting_bytes(int fd)
{
	int n;

	CHECK_OK(ioctl(fd, FIONREAD, &n));
	return n;
}

static long call(void)
{
	struct iovec iov[2] = { { big, BIG / 2 }, { big, BIG / 2 } };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_iov = iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = iov + 1, .msg_iovlen = 1 } },
	};
	int n;

	switch (mover.way) {
	case WRITE: return write(mover.fd, big, BIG);
	case WRITEV: return writev(mover.fd, iov, 2);
	case SEND: return send(mover.fd, big, BIG, 0);
	case SENDMSG: return sendmsg(mover.fd, &m->msg_hdr, 0);
	case SENDMMSG:
		n = sendmmsg(mover.fd, m, 2, 0);
		return n < 0 ? n : m[0].msg_len + (n == 2 ? m[1].msg_len : 0);
	case SPLICE: return splice(mover.from, NULL, mover.fd, NULL, BIG, 0);
	default: return -1;
	}
}

/* Calls until it is cancelled; what the calls answer is counted. */
static void *moves(void *arg)
{
	long n;

	while ((n = call()) > 0)
		mover.moved += n + (mover.moved < 0);
	CHECK(!arg);
	return NULL;
}

static long drain(int fd)
{
	static char room[1 << 16];
	long total = 0, n;

	while ((n = read(fd, room, sizeof(room))) > 0)
		total += n;
	CHECK_INT(n, 0);
	return total;
}

/* Close both ends.  Returns how many bytes nobody has read. */
static long end_line(enum line line, const int fd[2])
{
	/* A FIFO that is open for both has no end. */
	long n = line == A_FIFO ? waiting_bytes(fd[0]) : 0;

	CHECK_OK(close(fd[1]));
	if (line != A_FIFO)
		n = drain(fd[0]);
	CHECK_OK(close(fd[0]));
	return n;
}

static void check_moved(long want)
{
	long got = mover.moved < 0 ? 0 : mover.moved;

	/* At most the last call's count is missing. */
	CHECK(got <= want);
	if (strict)
		CHECK_INT(got, want);
}

static void cancel_sending(enum line line, enum way way)
{
	int fd[2], source[2];
	pthread_t t;

	make_line(line, fd);
	CHECK_OK(pipe(source));
	mover.fd = fd[1];
	mover.from = source[0];
	mover.way = way;
	mover.moved = -1;
	t = start(moves, NULL);
	if (way == SPLICE)
		CHECK_INT(write(source[1], big, 1000), 1000);
	while (!waiting_bytes(fd[0]))
		usleep(1000);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	check_moved(end_line(line, fd));
	CHECK_OK(close(source[0]));
	CHECK_OK(close(source[1]));
}

/* ---- receiving ------------------------------------------------------------------- */

static void *receives(void *arg)
{
	struct iovec iov[2] = { { big, 50 }, { big + 50, 50 } };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_iov = iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = iov + 1, .msg_iovlen = 1 } },
	};

	if (!arg)
		mover.moved = recv(mover.fd, big, 100, MSG_WAITALL);
	else if (recvmmsg(mover.fd, m, 2, 0, NULL) == 1)
		mover.moved = m[0].msg_len;
	pthread_testcancel();
	CHECK(!"cancelled");
	return NULL;
}

static void cancel_receiving(int messages)
{
	pthread_t t;
	int fd[2];

	CHECK_OK(socketpair(AF_UNIX, messages ? SOCK_DGRAM : SOCK_STREAM, 0, fd));
	mover.fd = fd[0];
	mover.moved = -1;
	t = start(receives, messages ? big : NULL);
	CHECK_INT(send(fd[1], big, 50, 0), 50);
	while (waiting_bytes(fd[0]))
		usleep(1000);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	check_moved(50);
	CHECK_OK(close(fd[0]));
	CHECK_OK(close(fd[1]));
}

/* ---- bytes that come while the thread is cancelled ------------------------------- */

static void *reads(void *arg)
{
	char c;

	while (read(mover.fd, &c, 1) == 1)
		mover.moved++;
	return arg;
}

static void race(enum line line)
{
	uint64_t seed = 1;

	for (int i = 0; i < ROUNDS; i++) {
		long sent = 0, many = (long)(random_next(&seed) % 20);
		pthread_t t;
		int fd[2];

		make_line(line, fd);
		mover.fd = fd[0];
		mover.moved = 0;
		t = start(reads, NULL);
		for (; sent < many; sent++)
			CHECK_INT(write(fd[1], "x", 1), 1);
		CHECK_OK(pthread_cancel(t));
		CHECK_INT(write(fd[1], "x", 1), 1);
		CHECK(finish(t) == PTHREAD_CANCELED);
		check_moved(sent + 1 - end_line(line, fd));
	}
}

int main(int argc, char **argv)
{
	strict = argc > 1 && !strcmp(argv[1], "strict");
	for (int line = 0; line < LINES; line++) {
		for (int way = 0; way < WAYS; way++)
			if (line >= A_UNIX || way <= WRITEV)
				cancel_sending((enum line)line, (enum way)way);
		race((enum line)line);
	}
	cancel_receiving(0);
	cancel_receiving(1);
	return success();
}
