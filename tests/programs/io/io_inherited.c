/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_inherited.c - sends on sockets that were there before the first thread, so
 * that others may share them and their O_NONBLOCK: a part is sent, nothing is, all is; blocking and
 * not, and changed by another process between two calls.
 */
#include "sockets.h"

#include <stdbool.h>
#include <sys/wait.h>

enum { LARGE = 3000000, SMALL = 100 };

static int stream[2], local[2];
static char large[LARGE];

static void set_nonblocking(int fd, bool on)
{
	CHECK_OK(fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0));
}

/* By a process of its own, which this one learns nothing of. */
static void set_elsewhere(int fd, bool on)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		set_nonblocking(fd, on);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

/* Reads from the first descriptor so many bytes. */
static void *drains(void *arg)
{
	const int fd = ((int *)arg)[0];
	size_t left = (size_t)((int *)arg)[1];
	char buf[8192];

	while (left) {
		ssize_t n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));

		CHECK(n > 0);
		left -= (size_t)n;
	}
	return NULL;
}

static void test_pair(const int pair[2], const char *name)
{
	int todo[2] = { pair[1], LARGE };
	pthread_t drain;
	ssize_t sent, more;

	CHECK_INT(write(pair[0], large, SMALL), SMALL);
	CHECK_INT(send(pair[0], large, SMALL, 0), SMALL);
	todo[1] = 2 * SMALL;
	drains(todo);

	/* O_NONBLOCK: a part, then nothing. */
	set_elsewhere(pair[0], true);
	sent = write(pair[0], large, LARGE);
	CHECK(sent > 0 && sent < LARGE);
	/* Room may come by itself, while the kernel moves what there is to the other end. */
	while ((more = send(pair[0], large, LARGE, 0)) > 0)
		sent += more;
	CHECK_INT(errno, EAGAIN);
	while ((more = write(pair[0], large, LARGE)) > 0)
		sent += more;
	CHECK_INT(errno, EAGAIN);

	/* Blocking again: it waits, and sends all. */
	set_elsewhere(pair[0], false);
	while ((more = send(pair[0], large, LARGE, MSG_DONTWAIT)) > 0)
		sent += more;
	CHECK_INT(errno, EAGAIN);
	todo[1] = (int)sent + 2 * LARGE;
	drain = start(drains, todo);
	CHECK_INT(write(pair[0], large, LARGE), LARGE);
	CHECK_INT(send(pair[0], large, LARGE, 0), LARGE);
	CHECK_OK(pthread_join(drain, NULL));

	/* By this process, too. */
	set_nonblocking(pair[0], true);
	sent = write(pair[0], large, LARGE);
	CHECK(sent > 0 && sent < LARGE);
	set_nonblocking(pair[0], false);
	todo[1] = (int)sent;
	drains(todo);
	puts(name);
}

static void *test_all(void *arg)
{
	test_pair(stream, "TCP");
	test_pair(local, "Unix");
	CHECK_OK(close(stream[1]));
	CHECK_OK(close(local[1]));
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERR(write(local[0], large, LARGE), EPIPE);
	while (write(stream[0], large, SMALL) > 0)
		settle();
	CHECK(errno == EPIPE || errno == ECONNRESET);
	return arg;
}

int main(void)
{
	tcp_pair(stream);
	make_pair(SOCKET, local);
	for (int i = 0; i < 2; i++) {
		const int size = 65536;

		CHECK_OK(setsockopt(stream[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
		CHECK_OK(setsockopt(stream[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	}
	CHECK_OK(pthread_join(start(test_all, NULL), NULL));
	return success();
}
