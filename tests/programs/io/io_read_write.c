/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_read_write.c - read, write and their vector and positioned forms. */
#include "check.h"

#include <limits.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BIG (6 << 20)

/* The compiler must not see through these. */
static void *volatile bad = (void *)1;
static void *volatile null = NULL;
static volatile int no_fd = -1, negative = -1;

static void set_flags(int fd, int flags)
{
	CHECK_OK(fcntl(fd, F_SETFL, flags));
}

static unsigned char pattern(size_t i)
{
	return (unsigned char)(i * 7 + i / 251);
}

static void errors(void)
{
	struct iovec iov[2] = { { NULL, 0 }, { NULL, 0 } };
	int p[2], file = temp_file(), dir, ro;
	struct iovec *many;
	char buf[16];

	CHECK_OK(pipe(p));
	CHECK_ERR(read(no_fd, buf, 1), EBADF);
	CHECK_ERR(write(no_fd, buf, 1), EBADF);
	CHECK_ERR(read(100000, buf, 1), EBADF);
	CHECK_ERR(read(no_fd, buf, 0), EBADF);
	CHECK_ERR(readv(no_fd, iov, 1), EBADF);
	CHECK_ERR(read(p[1], buf, 1), EBADF);
	CHECK_ERR(write(p[0], buf, 1), EBADF);
	CHECK_ERR(pread(no_fd, buf, 1, 0), EBADF);
	CHECK_ERR(pwrite(no_fd, buf, 1, 0), EBADF);
	CHECK_ERR(pread(p[0], buf, 1, 0), ESPIPE);
	CHECK_ERR(pwrite(p[1], buf, 1, 0), ESPIPE);
	CHECK_ERR(preadv(p[0], iov, 1, 0), ESPIPE);
	CHECK_ERR(pwritev(p[1], iov, 1, 0), ESPIPE);
	CHECK_ERR(pread(file, buf, 1, -1), EINVAL);
	CHECK_ERR(pwrite(file, buf, 1, -1), EINVAL);
	/* Before it looks at the descriptor. */
	CHECK_ERR(pread(no_fd, buf, 1, -1), EINVAL);
	CHECK_ERR(pwrite(no_fd, buf, 1, -1), EINVAL);
	CHECK_ERR(preadv(no_fd, iov, 1, -1), EINVAL);
	CHECK_ERR(pwritev(no_fd, iov, 1, -1), EINVAL);
	dir = open("/", O_RDONLY | O_DIRECTORY);
	CHECK_ERR(read(dir, buf, 1), EISDIR);
	ro = open("/proc/self/exe", O_RDONLY);
	CHECK_ERR(write(ro, buf, 1), EBADF);
	close(dir);
	close(ro);

	/* Nothing asked, nothing done, also on an empty pipe. */
	CHECK_KEEPS(read(p[0], buf, 0), 0);
	CHECK_KEEPS(write(p[1], buf, 0), 0);
	CHECK_KEEPS(write(file, buf, 0), 0);
	CHECK_KEEPS(read(file, null, 0), 0);
	CHECK_KEEPS(readv(p[0], iov, 0), 0);
	CHECK_KEEPS(writev(p[1], iov, 0), 0);
	CHECK_KEEPS(writev(p[1], iov, 2), 0);
	CHECK_ERR(readv(p[0], iov, negative), EINVAL);
	CHECK_ERR(writev(p[1], iov, negative), EINVAL);
	many = calloc(IOV_MAX + 1, sizeof(*many));
	CHECK_ERR(writev(p[1], many, IOV_MAX + 1), EINVAL);
	CHECK_ERR(readv(p[0], many, IOV_MAX + 1), EINVAL);
	CHECK_ERR(pwritev(file, many, IOV_MAX + 1, 0), EINVAL);
	for (int i = 0; i < IOV_MAX; i++) {
		many[i].iov_base = &buf[i % 16];
		many[i].iov_len = 1;
	}
	CHECK_KEEPS(writev(file, many, IOV_MAX), IOV_MAX);
	free(many);

	CHECK_ERR(write(p[1], null, 1), EFAULT);
	CHECK_ERR(write(p[1], bad, 1), EFAULT);
	CHECK_ERR(writev(p[1], bad, 1), EFAULT);
	CHECK_INT(write(p[1], "ab", 2), 2);
	CHECK_ERR(read(p[0], null, 1), EFAULT);
	CHECK_ERR(read(p[0], bad, 1), EFAULT);
	CHECK_INT(read(p[0], buf, 1), 1);
	iov[0].iov_base = bad;
	iov[0].iov_len = 1;
	CHECK_ERR(readv(p[0], iov, 1), EFAULT);
	CHECK_INT(read(p[0], buf, 16), 1);
	CHECK_OK(lseek(file, 0, SEEK_SET));
	CHECK_ERR(read(file, bad, 1), EFAULT);

	set_flags(p[0], O_NONBLOCK);
	CHECK_ERR(read(p[0], buf, 1), EAGAIN);
	set_flags(p[0], 0);
	close(p[0]);
	close(p[1]);
	close(file);
	puts("errors");
}

static void short_counts(int in, int out)
{
	struct iovec iov[3];
	char buf[64], a[3], b[4], c[64];

	CHECK_KEEPS(write(out, "hello", 5), 5);
	CHECK_KEEPS(read(in, buf, sizeof(buf)), 5);
	CHECK_OK(memcmp(buf, "hello", 5));
	iov[0].iov_base = "ab";
	iov[0].iov_len = 2;
	iov[1].iov_base = NULL;
	iov[1].iov_len = 0;
	iov[2].iov_base = "cdefgh";
	iov[2].iov_len = 6;
	CHECK_KEEPS(writev(out, iov, 3), 8);
	iov[0].iov_base = a;
	iov[0].iov_len = 3;
	iov[1].iov_base = b;
	iov[1].iov_len = 4;
	iov[2].iov_base = c;
	iov[2].iov_len = sizeof(c);
	CHECK_KEEPS(readv(in, iov, 3), 8);
	CHECK_OK(memcmp(a, "abc", 3) | memcmp(b, "defg", 4) | (c[0] != 'h'));
	CHECK_INT(write(out, "xyz", 3), 3);
	CHECK_INT(read(in, buf, 2), 2);
	CHECK_INT(read(in, buf, 2), 1);
	close(out);
	CHECK_KEEPS(read(in, buf, sizeof(buf)), 0);
	CHECK_KEEPS(read(in, buf, sizeof(buf)), 0);
	close(in);
}

struct drain {
	int fd;
	size_t want;
};

/* Reads slowly, in odd pieces, and checks every byte. */
static void *drain(void *arg)
{
	struct drain *d = arg;
	char *buf = malloc(100003);
	size_t have = 0;
	ssize_t r;

	for (int i = 0; (r = read(d->fd, buf, i % 3 ? 100003 : 777)) > 0; i++) {
		for (ssize_t k = 0; k < r; k += 61)
			CHECK_INT((unsigned char)buf[k],
				  pattern(have + (size_t)k));
		have += (size_t)r;
		if (i % 16 == 0)
			usleep(100);
	}
	CHECK_OK(r);
	CHECK_INT(have, d->want);
	free(buf);
	return NULL;
}

enum { BY_WRITE, BY_WRITEV, BY_SEND, BY_SENDMSG, WAYS };

/* A blocking write answers only when all has been taken. */
static void large(int in, int out, int way)
{
	struct drain d = { in, BIG };
	unsigned char *data = malloc(BIG);
	struct msghdr msg = { .msg_iovlen = 5 };
	struct iovec iov[5];
	pthread_t t;

	for (size_t i = 0; i < BIG; i++)
		data[i] = pattern(i);
	for (size_t i = 0; i < 5; i++) {
		iov[i].iov_base = data + i * (BIG / 5);
		iov[i].iov_len = i < 4 ? BIG / 5 : BIG - 4 * (BIG / 5);
	}
	msg.msg_iov = iov;
	t = start(drain, &d);
	switch (way) {
	case BY_WRITE:
		CHECK_KEEPS(write(out, data, BIG), BIG);
		break;
	case BY_WRITEV:
		CHECK_KEEPS(writev(out, iov, 5), BIG);
		break;
	case BY_SEND:
		CHECK_KEEPS(send(out, data, BIG, 0), BIG);
		break;
	case BY_SENDMSG:
		CHECK_KEEPS(sendmsg(out, &msg, 0), BIG);
		break;
	}
	/* iov is the caller's and stays as it was. */
	CHECK(iov[1].iov_base == data + BIG / 5);
	CHECK_INT(iov[1].iov_len, BIG / 5);
	close(out);
	finish(t);
	close(in);
	free(data);
}

static int record_pipe[2];

static void *write_records(void *arg)
{
	char record[PIPE_BUF];

	memset(record, 'a' + (int)(intptr_t)arg, sizeof(record));
	for (int i = 0; i < 100; i++)
		CHECK_INT(write(record_pipe[1], record, sizeof(record)), PIPE_BUF);
	return NULL;
}

/* Up to PIPE_BUF bytes stay together. */
static void atomic_records(void)
{
	char record[PIPE_BUF];
	pthread_t t[4];

	CHECK_OK(pipe(record_pipe));
	for (intptr_t i = 0; i < 4; i++)
		t[i] = start(write_records, (void *)i);
	for (int i = 0; i < 400; i++) {
		CHECK_INT(read_all(record_pipe[0], record, PIPE_BUF), PIPE_BUF);
		for (int k = 1; k < PIPE_BUF; k++)
			CHECK_INT(record[k], record[0]);
	}
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	puts("atomic records");
}

static void nonblocking(void)
{
	static char buf[65536];
	int p[2], s[2], free_bytes;
	size_t total = 0;
	ssize_t r;

	CHECK_OK(pipe2(p, O_NONBLOCK));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	CHECK_ERR(read(p[0], buf, 1), EAGAIN);
	CHECK_ERR(read(s[0], buf, 1), EAGAIN);
	CHECK_ERR(recv(s[0], buf, 1, 0), EAGAIN);
	while ((r = write(p[1], buf, 50000)) > 0)
		total += (size_t)r;
	CHECK_ERR(write(p[1], buf, 1), EAGAIN);
	CHECK_OK(ioctl(p[0], FIONREAD, &free_bytes));
	CHECK_INT(free_bytes, total);
	while ((r = write(s[1], buf, sizeof(buf))) > 0)
		;
	CHECK_ERR(write(s[1], buf, sizeof(buf)), EAGAIN);
	CHECK_ERR(send(s[1], buf, sizeof(buf), 0), EAGAIN);
	/* Nobody else changed the flag. */
	CHECK_INT(fcntl(p[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(s[i]);
	}
	puts("non-blocking");
}

static void files(void)
{
	int fd = temp_file(), again;
	struct iovec iov[2];
	char buf[32], path[64], a[4], b[8];

	CHECK_KEEPS(write(fd, "0123456789", 10), 10);
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 10);
	CHECK_KEEPS(read(fd, buf, 10), 0);
	CHECK_KEEPS(pread(fd, buf, 32, 4), 6);
	CHECK_OK(memcmp(buf, "456789", 6));
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 10);
	CHECK_KEEPS(pwrite(fd, "AB", 2, 2), 2);
	CHECK_KEEPS(pread(fd, buf, 32, 100), 0);
	CHECK_INT(lseek(fd, 1, SEEK_SET), 1);
	CHECK_KEEPS(read(fd, buf, 4), 4);
	CHECK_OK(memcmp(buf, "1AB4", 4));
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 5);
	CHECK_KEEPS(write(fd, "X", 1), 1);
	CHECK_KEEPS(read(fd, buf, 1), 1);
	CHECK_INT(buf[0], '6');
	/* Beyond the end: a hole. */
	CHECK_KEEPS(pwrite(fd, "z", 1, 20), 1);
	CHECK_KEEPS(pread(fd, buf, 32, 9), 12);
	CHECK_INT(buf[5], 0);

	iov[0].iov_base = a;
	iov[0].iov_len = sizeof(a);
	iov[1].iov_base = b;
	iov[1].iov_len = sizeof(b);
	CHECK_KEEPS(preadv(fd, iov, 2, 0), 12);
	CHECK_OK(memcmp(a, "01AB", 4) | memcmp(b, "4X6789", 6));
	iov[0].iov_base = "PQ";
	iov[0].iov_len = 2;
	iov[1].iov_base = "R";
	iov[1].iov_len = 1;
	CHECK_KEEPS(pwritev(fd, iov, 2, 6), 3);
	CHECK_KEEPS(pread(fd, buf, 4, 5), 4);
	CHECK_OK(memcmp(buf, "XPQR", 4));
	iov[0].iov_base = a;
	iov[0].iov_len = 4;
	CHECK_INT(lseek(fd, 5, SEEK_SET), 5);
	CHECK_KEEPS(preadv2(fd, iov, 1, -1, 0), 4);
	CHECK_OK(memcmp(a, "XPQR", 4));
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 9);
	CHECK_KEEPS(preadv2(fd, iov, 1, 0, 0), 4);
	CHECK_OK(memcmp(a, "01AB", 4));
	iov[0].iov_base = "end";
	iov[0].iov_len = 3;
	CHECK_KEEPS(pwritev2(fd, iov, 1, 0, RWF_APPEND), 3);
	CHECK_INT(lseek(fd, 0, SEEK_END), 24);
	CHECK_ERR(preadv2(fd, iov, 1, 0, 0x40000000), EOPNOTSUPP);

	/* Append: each write at the end, wherever the offset is. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_APPEND);
	CHECK(again >= 0);
	CHECK_KEEPS(write(again, "!", 1), 1);
	CHECK_KEEPS(pwrite(again, "?", 1, 0), 1);
	CHECK_INT(lseek(fd, 0, SEEK_END), 26);
	CHECK_KEEPS(pread(fd, buf, 2, 24), 2);
	CHECK_OK(memcmp(buf, "!?", 2));
	close(again);
	close(fd);
	puts("files");
}

/* Many threads append to and read from one offset: nothing lost or doubled. */
static int shared_file;

static void *write_shared(void *arg)
{
	for (int i = 0; i < 200; i++)
		CHECK_INT(write(shared_file, "0123456789abcde\n", 16), 16);
	return arg;
}

static void *read_shared(void *arg)
{
	char buf[16];
	long n = 0;
	ssize_t r;

	while ((r = read(shared_file, buf, 16)) > 0) {
		CHECK_INT(r, 16);
		CHECK_OK(memcmp(buf, "0123456789abcde\n", 16));
		n++;
	}
	CHECK_OK(r);
	(void)arg;
	return (void *)n;
}

static void one_offset(void)
{
	pthread_t t[4];
	long n = 0;

	shared_file = temp_file();
	for (int i = 0; i < 4; i++)
		t[i] = start(write_shared, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	CHECK_INT(lseek(shared_file, 0, SEEK_CUR), 4 * 200 * 16);
	CHECK_OK(lseek(shared_file, 0, SEEK_SET));
	for (int i = 0; i < 4; i++)
		t[i] = start(read_shared, NULL);
	for (int i = 0; i < 4; i++)
		n += (long)finish(t[i]);
	CHECK_INT(n, 800);
	close(shared_file);
	puts("one offset");
}

static void *run(void *arg)
{
	int p[2];

	errors();
	CHECK_OK(pipe(p));
	short_counts(p[0], p[1]);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	short_counts(p[0], p[1]);
	puts("short counts");
	for (int way = 0; way < WAYS; way++) {
		if (way < BY_SEND) {
			CHECK_OK(pipe(p));
			large(p[0], p[1], way);
		}
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
		large(p[0], p[1], way);
	}
	puts("large");
	nonblocking();
	files();
	return arg;
}

int main(void)
{
	run(NULL);
	finish(start(run, NULL));
	atomic_records();
	one_offset();
	return success();
}
