/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_fifo_many.c - many readers of a FIFO, of a pipe that was opened by name, and of
 * one that was spliced: each byte is read once.
 */
#include "check.h"

#include <sys/stat.h>

enum { READERS = 6, BYTES = 2000 };

static int taken;

static void *takes(void *arg)
{
	int fd = (int)(intptr_t)arg;
	ssize_t n;
	char c;

	while ((n = read(fd, &c, 1)) == 1 && c == 'x')
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
	CHECK_INT(n, 1);
	return NULL;
}

static void shared(int fd, int w)
{
	pthread_t t[READERS];

	taken = 0;
	for (int i = 0; i < READERS; i++)
		t[i] = start(takes, (void *)(intptr_t)fd);
	for (int i = 0; i < BYTES; i++)
		CHECK_INT(write(w, "x", 1), 1);
	for (int i = 0; i < READERS; i++)
		CHECK_INT(write(w, "e", 1), 1);
	for (int i = 0; i < READERS; i++)
		finish(t[i]);
	CHECK_INT(taken, BYTES);
}

int main(void)
{
	char directory[] = "/tmp/check-XXXXXX", path[64];
	int fd, r, p[2], q[2];

	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/fifo", directory);
	CHECK_OK(mkfifo(path, 0600));
	fd = open(path, O_RDWR | O_CLOEXEC);
	r = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && r >= 0);
	CHECK_OK(unlink(path));
	CHECK_OK(rmdir(directory));
	shared(fd, fd);
	shared(r, fd);
	CHECK_OK(close(fd));
	CHECK_OK(close(r));
	/* A pipe by its name, and one that was spliced. */
	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		shared(fd, p[1]);
		CHECK_OK(close(fd));
	}
	shared(p[0], p[1]);
	CHECK_INT(write(p[1], "t", 1), 1);
	CHECK_INT(splice(p[0], NULL, q[1], NULL, 1, 0), 1);
	CHECK_INT(read(q[0], path, 1), 1);
	CHECK_INT(path[0], 't');
	shared(p[0], p[1]);
	shared(q[0], q[1]);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(close(p[i]));
		CHECK_OK(close(q[i]));
	}
	return success();
}
