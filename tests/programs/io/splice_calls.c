/* SPDX-License-Identifier: MIT */
/* tests/programs/io/splice_calls.c - sendfile, splice, tee, vmsplice, copy_file_range. */
#include "sockets.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { BIG = 1 << 20 };

static void *volatile nowhere = (void *)16;
static struct event at_it = EVENT_INIT;

static void fill(int fd, size_t n)
{
	char block[4096];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 7);
	for (size_t done = 0; done < n; done += sizeof(block))
		write_all(fd, block, sizeof(block));
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
}

struct drain {
	int fd, delay;
	size_t want;
};

/* Reads slowly, so that the other end has to wait. */
static void *drains(void *arg)
{
	struct drain *d = arg;
	char block[8192];
	size_t have = 0;

	while (have < d->want) {
		ssize_t n = read(d->fd, block, sizeof(block));

		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i += 997)
			CHECK_INT(block[i], (char)((have + (size_t)i) % 4096 * 7));
		have += (size_t)n;
		if (d->delay && have % (256 * 1024) < 8192)
			usleep((useconds_t)d->delay);
	}
	return NULL;
}

static void *sends_files(void *arg)
{
	int file = temp_file(), s[2], p[2];
	off_t offset = 4096;
	struct drain d;
	size_t sent = 0;
	pthread_t t;

	fill(file, BIG);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(pipe(p));
	d = (struct drain){ s[1], 500, BIG };
	t = start(drains, &d);
	while (sent < BIG) {
		ssize_t n = sendfile(s[0], file, NULL, BIG - sent);

		CHECK(n > 0);
		sent += (size_t)n;
	}
	CHECK_INT(lseek(file, 0, SEEK_CUR), BIG);
	finish(t);
	/* With an offset the position stays. */
	CHECK_KEEPS(sendfile(s[0], file, &offset, 4096), 4096);
	CHECK_INT(offset, 8192);
	CHECK_INT(lseek(file, 0, SEEK_CUR), BIG);
	offset = BIG;
	CHECK_KEEPS(sendfile(s[0], file, &offset, 10), 0);
	CHECK_KEEPS(sendfile(s[0], file, &offset, 0), 0);
	CHECK_ERR(sendfile(-1, file, NULL, 1), EBADF);
	CHECK_ERR(sendfile(s[0], -1, NULL, 1), EBADF);
	CHECK_ERR(sendfile(s[0], file, nowhere, 1), EFAULT);
	CHECK_ERR(sendfile(p[0], file, NULL, 1), EBADF);
	/* Not blocking: EAGAIN once it is full. */
	CHECK_OK(fcntl(s[0], F_SETFL, O_NONBLOCK));
	ssize_t n;
	do {
		offset = 0;
		n = sendfile(s[0], file, &offset, BIG);
	} while (n > 0);
	CHECK_INT(n, -1);
	CHECK_INT(errno, EAGAIN);
	signal(SIGPIPE, SIG_IGN);
	close(s[1]);
	offset = 0;
	CHECK_ERR(sendfile(s[0], file, &offset, 10), EPIPE);
	close(s[0]);
	close(p[0]);
	close(p[1]);
	close(file);
	return arg;
}

/* From file to pipe to socket, and back: the pipe fills and empties all the time. */
/* One call takes all, however often it has to wait for room. */
static void *sends_whole(void *arg)
{
	const int small = 1 << 16;
	int file = temp_file(), s[2], p[2];
	off_t offset = 0;
	struct drain d;
	pthread_t t;

	fill(file, 8 * BIG);
	tcp_pair(s);
	d = (struct drain){ s[1], 2000, 8 * BIG };
	t = start(drains, &d);
	CHECK_INT(sendfile(s[0], file, &offset, 8 * BIG), 8 * BIG);
	finish(t);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));

	tcp_pair(s);
	CHECK_OK(pipe(p));
	CHECK_INT(fcntl(p[1], F_SETPIPE_SZ, BIG), BIG);
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	d = (struct drain){ s[1], 2000, BIG };
	for (int i = 0; i < BIG / 4096; i++) {
		char block[4096];

		CHECK_INT(read(file, block, sizeof(block)), sizeof(block));
		write_all(p[1], block, sizeof(block));
	}
	t = start(drains, &d);
	CHECK_INT(splice(p[0], NULL, s[0], NULL, BIG, 0), BIG);
	finish(t);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
	CHECK_OK(close(p[0]));
	CHECK_OK(close(p[1]));
	CHECK_OK(close(file));
	return arg;
}

static void *splices(void *arg)
{
	int file = temp_file(), s[2], p[2];
	off64_t offset = 0;
	struct drain d;
	size_t sent = 0;
	pthread_t t;

	fill(file, BIG);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(pipe(p));
	d = (struct drain){ s[1], 300, BIG };
	t = start(drains, &d);
	while (sent < BIG) {
		ssize_t in = splice(file, &offset, p[1], NULL, BIG - sent, SPLICE_F_MOVE), out = 0;

		CHECK(in > 0);
		while (out < in) {
			ssize_t n = splice(p[0], NULL, s[0], NULL, (size_t)(in - out),
					   SPLICE_F_MORE);

			CHECK(n > 0);
			out += n;
		}
		sent += (size_t)in;
	}
	finish(t);
	CHECK_ERR(splice(p[0], NULL, s[0], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERR(splice(file, NULL, s[0], NULL, 1, 0), EINVAL);
	CHECK_ERR(splice(p[0], &offset, s[0], NULL, 1, 0), ESPIPE);
	CHECK_ERR(splice(p[1], NULL, s[0], NULL, 1, 0), EBADF);
	CHECK_ERR(splice(-1, NULL, s[0], NULL, 1, 0), EBADF);
	CHECK_ERR(splice(p[0], NULL, s[0], NULL, 1, 0x4000), EINVAL);
	CHECK_KEEPS(splice(p[0], NULL, s[0], NULL, 0, 0), 0);
	/* The pipe of nobody any more is at its end. */
	close(p[1]);
	CHECK_KEEPS(splice(p[0], NULL, s[0], NULL, 1, 0), 0);
	close(p[0]);
	close(s[0]);
	close(s[1]);
	close(file);
	return arg;
}

static void *writes_late(void *arg)
{
	int *p = arg;

	event_wait(&at_it, 1);
	settle();
	CHECK_INT(write(p[1], "late", 4), 4);
	return NULL;
}

/* tee and vmsplice wait as well: for data, for room. */
static void *tees(void *arg)
{
	int a[2], b[2];
	char buf[16];
	struct iovec iov = { "vmsplice", 8 };
	pthread_t t;

	CHECK_OK(pipe(a));
	CHECK_OK(pipe(b));
	t = start(writes_late, a);
	event_post(&at_it);
	CHECK_KEEPS(tee(a[0], b[1], 100, 0), 4);
	finish(t);
	CHECK_INT(read(a[0], buf, sizeof(buf)), 4);
	CHECK_INT(read(b[0], buf, sizeof(buf)), 4);
	CHECK_OK(memcmp(buf, "late", 4));
	CHECK_ERR(tee(a[0], b[1], 100, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERR(tee(a[0], a[1], 100, 0), EINVAL);
	CHECK_ERR(tee(-1, b[1], 100, 0), EBADF);
	CHECK_KEEPS(vmsplice(a[1], &iov, 1, 0), 8);
	CHECK_INT(read(a[0], buf, sizeof(buf)), 8);
	CHECK_OK(memcmp(buf, "vmsplice", 8));
	CHECK_ERR(vmsplice(-1, &iov, 1, 0), EBADF);
	CHECK_ERR(vmsplice(a[1], nowhere, 1, 0), EFAULT);
	CHECK_KEEPS(vmsplice(a[1], &iov, 0, 0), 0);
	/* Reading by vmsplice waits for data. */
	t = start(writes_late, a);
	iov = (struct iovec){ buf, 4 };
	CHECK_KEEPS(vmsplice(a[0], &iov, 1, 0), 4);
	CHECK_OK(memcmp(buf, "late", 4));
	finish(t);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
	return arg;
}

/* A pipe takes what it has room for, and gives what it has: nobody waits for it in the middle. */
static void *parts(void *arg)
{
	int file = temp_file(), s[2], p[2], other;
	off_t offset = 0;
	char block[4096];
	pthread_t t;

	fill(file, BIG);
	CHECK_OK(pipe(p));
	/* Its number may be one of which nothing is known. */
	other = dup(p[1]);
	CHECK(other >= 0);
	for (int i = 0; i < 2; i++) {
		ssize_t n = sendfile(i ? p[1] : other, file, &offset, BIG / 2);

		CHECK(n > 0 && n <= fcntl(p[1], F_GETPIPE_SZ));
		while (n > 0)
			n -= (ssize_t)read_all(p[0], block, n < 4096 ? (size_t)n : 4096);
	}
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
		CHECK_OK(fcntl(s[0], F_SETFL, flags));
		t = start(writes_late, p);
		event_post(&at_it);
		CHECK_KEEPS(splice(p[0], NULL, s[0], NULL, 100, 0), 4);
		finish(t);
		CHECK_INT(read(s[1], block, sizeof(block)), 4);
		CHECK_OK(memcmp(block, "late", 4));
	}
	close(other);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(s[i]);
	}
	close(file);
	return arg;
}

static void *copies(void *arg)
{
	int from = temp_file(), to = temp_file(), p[2];
	off64_t a = 4096, b = 0;
	char x[4096], y[4096];

	fill(from, BIG);
	CHECK_OK(pipe(p));
	CHECK_KEEPS(copy_file_range(from, &a, to, &b, 4096, 0), 4096);
	CHECK_INT(a, 8192);
	CHECK_INT(b, 4096);
	CHECK_INT(pread(from, x, 4096, 4096), 4096);
	CHECK_INT(pread(to, y, 4096, 0), 4096);
	CHECK_OK(memcmp(x, y, 4096));
	CHECK_KEEPS(copy_file_range(from, NULL, to, NULL, 0, 0), 0);
	CHECK_ERR(copy_file_range(from, NULL, to, NULL, 1, 1), EINVAL);
	CHECK_ERR(copy_file_range(-1, NULL, to, NULL, 1, 0), EBADF);
	CHECK_ERR(copy_file_range(from, NULL, p[1], NULL, 1, 0), EINVAL);
	close(from);
	close(to);
	close(p[0]);
	close(p[1]);
	return arg;
}

int main(void)
{
	void *(*const all[])(void *) = { sends_files, sends_whole, splices, tees, parts, copies };
	const int kinds = COUNT(all);
	pthread_t t[2 * COUNT(all)];

	for (int i = 0; i < 2 * kinds; i++)
		t[i] = start(all[i % kinds], NULL);
	for (int i = 0; i < 2 * kinds; i++)
		finish(t[i]);
	for (int i = 0; i < kinds; i++)
		all[i](NULL);
	return success();
}
