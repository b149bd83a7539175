/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_whole.c - reads that must be whole, end by themselves, or fail
 * at once: devices that give all that is asked for, files that are cached in part, terminals with VMIN 0, descriptors whose
 * read is an error, a socket after a refused connect.
 */
#include "sockets.h"

#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <termios.h>

enum { SIZE = 5000000 };

static void *volatile bad = (void *)1;

static void half_cached(int fd)
{
	CHECK_OK(fsync(fd));
	CHECK_OK(posix_fadvise(fd, 100000, 0, POSIX_FADV_DONTNEED));
}

static void files(void)
{
	char name[] = "/tmp/io_whole.XXXXXX";
	char *data = malloc(SIZE), *got = malloc(SIZE + 100);
	struct iovec iov[2] = { { got, 70000 }, { got + 70000, SIZE + 100 - 70000 } };
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	for (int i = 0; i < SIZE; i++)
		data[i] = (char)(i * 7 + i / 4096);
	CHECK_INT(write(fd, data, SIZE), SIZE);

	half_cached(fd);
	CHECK_INT(pread(fd, got, SIZE, 0), SIZE);
	CHECK_OK(memcmp(got, data, SIZE));
	half_cached(fd);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	memset(got, 0, SIZE);
	CHECK_INT(read(fd, got, SIZE + 100), SIZE);
	CHECK_OK(memcmp(got, data, SIZE));
	CHECK_INT(lseek(fd, 0, SEEK_CUR), SIZE);
	half_cached(fd);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	memset(got, 0, SIZE);
	CHECK_INT(readv(fd, iov, 2), SIZE);
	CHECK_OK(memcmp(got, data, SIZE));
	half_cached(fd);
	memset(got, 0, SIZE);
	CHECK_INT(preadv(fd, iov, 2, 1000), SIZE - 1000);
	CHECK_OK(memcmp(got, data + 1000, SIZE - 1000));
	close(fd);
	free(data);
	free(got);

	fd = open("/dev/zero", O_RDONLY);
	got = malloc(32 << 20);
	CHECK_INT(read(fd, got, 32 << 20), 32 << 20);
	free(got);
	close(fd);
	puts("files");
}

static void terminal(void)
{
	struct termios t;
	int master, slave;
	char c;

	CHECK_OK(openpty(&master, &slave, NULL, NULL, NULL));
	CHECK_OK(tcgetattr(slave, &t));
	cfmakeraw(&t);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 1;
	CHECK_OK(tcsetattr(slave, TCSANOW, &t));
	CHECK_INT(read(slave, &c, 1), 0);
	t.c_cc[VTIME] = 0;
	CHECK_OK(tcsetattr(slave, TCSANOW, &t));
	CHECK_INT(read(slave, &c, 1), 0);
	CHECK_INT(write(master, "x", 1), 1);
	do {
		settle();
	} while (read(slave, &c, 1) == 0);
	CHECK_INT(c, 'x');
	close(master);
	close(slave);
	puts("terminal");
}

static void errors(void)
{
	int event = eventfd(0, 0), epoll = epoll_create1(0);
	char buf[16];

	CHECK_ERR(read(event, buf, 4), EINVAL);
	CHECK_ERR(write(event, buf, 4), EINVAL);
	CHECK_ERR(read(epoll, buf, sizeof(buf)), EINVAL);
	CHECK_ERR(write(epoll, buf, sizeof(buf)), EINVAL);
	/* The attempt has taken what was there: another one would wait. */
	CHECK_OK(eventfd_write(event, 5));
	CHECK_ERR(read(event, bad, 8), EFAULT);
	CHECK_OK(eventfd_write(event, 7));
	CHECK_INT(read(event, buf, 8), 8);
	CHECK_INT(buf[0], 7);
	close(event);
	close(epoll);
	puts("errors");
}

static void refused(void)
{
	struct sockaddr_in a;
	int closed = bound_socket(SOCK_STREAM, &a), fd;
	char c;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_ERR(connect(fd, (struct sockaddr *)&a, sizeof(a)), ECONNREFUSED);
	CHECK_ERR(recv(fd, &c, 1, 0), ENOTCONN);
	CHECK_ERR(read(fd, &c, 1), ENOTCONN);
	CHECK_OK(listen(closed, 1));
	CHECK_OK(connect(fd, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
	close(closed);
	puts("refused");
}

static int passers[2];
static atomic_bool passing;

/* Two threads pass a byte to and fro, until `passing` is false. */
static void *passes(void *arg)
{
	const int fd = passers[(intptr_t)arg];
	char byte = 0;

	do
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
	while (atomic_load(&passing) && read(fd, &byte, 1) == 1);
	return NULL;
}

static void devices(void)
{
	static const char *const names[] = { "/dev/zero", "/dev/urandom" };
	char *data = malloc(SIZE);
	struct iovec iov[2] = { { data, 1 }, { data + 1, SIZE - 1 } };
	pthread_t t[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, passers));
	atomic_store(&passing, true);
	for (intptr_t i = 0; i < 2; i++)
		t[i] = start(passes, (void *)i);
	for (size_t i = 0; i < COUNT(names); i++) {
		int fd = open(names[i], O_RDONLY);

		CHECK(fd >= 0);
		for (int round = 0; round < 3; round++) {
			CHECK_INT(read(fd, data, SIZE), SIZE);
			CHECK_INT(readv(fd, iov, 2), SIZE);
		}
		CHECK_OK(close(fd));
	}
	atomic_store(&passing, false);
	for (int i = 0; i < 2; i++)
		CHECK_OK(shutdown(passers[i], SHUT_RDWR));
	for (int i = 0; i < 2; i++)
		finish(t[i]);
	for (int i = 0; i < 2; i++)
		CHECK_OK(close(passers[i]));
	free(data);
}

static void *all(void *arg)
{
	files();
	devices();
	terminal();
	errors();
	refused();
	return arg;
}

int main(void)
{
	finish(start(all, NULL));
	all(NULL);
	return success();
}
