/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/file_released.c - when close() of the last descriptor has returned, the
 * open file is gone: a completed transfer must not keep a reference. Observed by flock(), whose
 * lock belongs to the open file.
 */
#include "check.h"

#include <sys/file.h>
#include <sys/uio.h>

enum { BLOCK = 4096, ROUNDS = 500 };

static char *buf;
/* A slow disk makes it fewer rounds. */
static long long limit = 50 * MS;

static void by_fsync(int fd)
{
	CHECK_INT(pwrite(fd, buf, 100, 0), 100);
	CHECK_OK(fsync(fd));
	/* It is known by now whether that takes long. */
	CHECK_INT(pwrite(fd, buf, 100, 100), 100);
	CHECK_OK(fsync(fd));
}

static void by_fdatasync(int fd)
{
	CHECK_INT(pwrite(fd, buf, 100, 0), 100);
	CHECK_OK(fdatasync(fd));
	CHECK_INT(pwrite(fd, buf, 100, 0), 100);
	CHECK_OK(fdatasync(fd));
}

static void by_write(int fd)
{
	CHECK_INT(pwrite(fd, buf, BLOCK, 0), BLOCK);
	CHECK_INT(pwrite(fd, buf, BLOCK, BLOCK), BLOCK);
}

static void by_flag(int fd)
{
	struct iovec iov[2] = { { buf, 100 }, { buf, 200 } };

	CHECK_INT(pwritev2(fd, iov, 2, 0, RWF_DSYNC), 300);
	CHECK_INT(pwritev2(fd, iov, 2, 300, RWF_SYNC), 300);
}

static void by_read(int fd)
{
	CHECK_INT(pread(fd, buf, BLOCK, 0), BLOCK);
	CHECK_INT(pread(fd, buf, BLOCK, BLOCK), BLOCK);
}

static void by_all(int fd)
{
	by_write(fd);
	CHECK_OK(fdatasync(fd));
	by_read(fd);
	CHECK_OK(fsync(fd));
}

static const struct {
	const char *what;
	void (*use)(int fd);
	int flags;
} variants[] = {
	{ "fsync", by_fsync, 0 },
	{ "fdatasync", by_fdatasync, 0 },
	{ "write", by_write, 0 },
	{ "O_SYNC", by_write, O_SYNC },
	{ "O_DSYNC", by_write, O_DSYNC },
	{ "RWF_DSYNC", by_flag, 0 },
	{ "O_DIRECT, reading", by_read, O_DIRECT },
	{ "O_DIRECT, writing", by_write, O_DIRECT },
	{ "O_DIRECT, O_SYNC", by_write, O_DIRECT | O_SYNC },
	{ "O_DIRECT, all", by_all, O_DIRECT },
};

static void *variant(void *arg)
{
	const int i = (int)(intptr_t)arg % (int)COUNT(variants);
	char name[] = "/tmp/check-XXXXXX";
	const long long end = now(CLOCK_MONOTONIC) + limit;
	int busy = 0, round, first = mkstemp(name);

	CHECK(first >= 0);
	CHECK_OK(ftruncate(first, 4 * BLOCK));
	CHECK_OK(close(first));
	for (round = 0; round < ROUNDS && now(CLOCK_MONOTONIC) < end; round++) {
		int fd = open(name, O_RDWR | O_CLOEXEC | variants[i].flags);

		/* Some file systems have no O_DIRECT. */
		if (fd < 0 && variants[i].flags & O_DIRECT && errno == EINVAL)
			break;
		CHECK(fd >= 0);
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			CHECK_INT(errno, EWOULDBLOCK);
			busy++;
			CHECK_OK(flock(fd, LOCK_EX));
		}
		variants[i].use(fd);
		CHECK_OK(close(fd));
	}
	CHECK_OK(unlink(name));
	/* Any process that reads the links in /proc/PID/fd has the file for a moment, too. */
	if (busy > 2 + round / 20)
		fail(__FILE__, __LINE__, "%s: locked after close() in %d of %d rounds\n",
		     variants[i].what, busy, round);
	return arg;
}

int main(void)
{
	pthread_t t[2 * COUNT(variants)];
	void *block = NULL;

	CHECK_OK(posix_memalign(&block, BLOCK, BLOCK));
	buf = block;
	memset(buf, 'x', BLOCK);
	/* Each alone, then all at once. */
	for (size_t i = 0; i < COUNT(variants); i++)
		finish(start(variant, (void *)(intptr_t)i));
	limit = 700 * MS;
	for (size_t i = 0; i < COUNT(t); i++)
		t[i] = start(variant, (void *)(intptr_t)i);
	for (size_t i = 0; i < COUNT(t); i++)
		finish(t[i]);
	free(block);
	return success();
}
