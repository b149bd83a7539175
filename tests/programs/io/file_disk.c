/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/file_disk.c - transfers to and from files, with every flag, and
 * waiting until they are on disk; many threads at once, also at the one position of a descriptor.
 */
#include "check.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

enum { BLOCK = 4096, BLOCKS = 64, LARGE = 16 * BLOCK, LARGE_RECORDS = 64, THREADS = 16 };

/* volatile: the compiler would warn of what is wrong on purpose. */
static void *volatile nowhere = (void *)16;
static volatile int minus_one = -1, too_many = IOV_MAX + 1;
static char name[] = "/tmp/check-XXXXXX";
static int shared;

static char *aligned(void)
{
	void *p = NULL;

	CHECK_OK(posix_memalign(&p, BLOCK, 4 * BLOCK));
	return p;
}

static void *edges(void *arg)
{
	char *buf = aligned();
	struct iovec iov[3] = { { buf, 3 }, { buf + 3, 0 }, { buf + 3, 5 } };
	struct iovec bad[2] = { { buf, 3 }, { nowhere, 3 } };
	int fd = temp_file(), p[2];

	memcpy(buf, "abcdefgh", 8);
	CHECK_KEEPS(pwrite(fd, buf, 8, 0), 8);
	CHECK_KEEPS(pwrite(fd, buf, 0, 0), 0);
	CHECK_KEEPS(pwrite64(fd, buf, 8, 100), 8);
	CHECK_ERR(pwrite(fd, buf, 8, -1), EINVAL);
	CHECK_ERR(pwrite(fd, nowhere, 8, 0), EFAULT);
	CHECK_ERR(pwrite(-1, buf, 8, 0), EBADF);
	CHECK_KEEPS(pwritev(fd, iov, 3, 200), 8);
	CHECK_KEEPS(pwritev(fd, iov, 1, 300), 3);
	CHECK_ERR(pwritev(fd, iov, minus_one, 0), EINVAL);
	CHECK_ERR(pwritev(fd, iov, too_many, 0), EINVAL);
	CHECK_ERR(pwritev(fd, iov, 1, -1), EINVAL);
	CHECK_ERR(pwritev(fd, nowhere, 1, 0), EFAULT);
	CHECK_ERR(pwritev(fd, nowhere, 2, 0), EFAULT);
	CHECK_KEEPS(pwritev(fd, iov, 0, 0), 0);
	CHECK_KEEPS(pwritev2(fd, iov, 3, 400, 0), 8);
	CHECK_KEEPS(pwritev2(fd, iov, 3, 500, RWF_DSYNC), 8);
	CHECK_KEEPS(pwritev2(fd, iov, 3, 600, RWF_SYNC), 8);
	CHECK_KEEPS(pwritev2(fd, iov, 3, -1, 0), 8);
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 8);
	CHECK_KEEPS(pwritev2(fd, iov, 3, 0, RWF_APPEND), 8);
	CHECK_INT(lseek(fd, 0, SEEK_END), 616);
	CHECK_ERR(pwritev2(fd, iov, 3, 0, 0x40000000), EOPNOTSUPP);
	CHECK_ERR(pwritev2(fd, nowhere, 1, 0, RWF_DSYNC), EFAULT);

	memset(buf, 0, 8);
	CHECK_KEEPS(pread(fd, buf, 8, 200), 8);
	CHECK_OK(memcmp(buf, "abcdefgh", 8));
	CHECK_KEEPS(pread64(fd, buf, 100, 610), 6);
	CHECK_KEEPS(pread(fd, buf, 8, 616), 0);
	CHECK_KEEPS(pread(fd, buf, 8, 100000), 0);
	CHECK_ERR(pread(fd, buf, 8, -1), EINVAL);
	CHECK_ERR(pread(fd, nowhere, 8, 0), EFAULT);
	CHECK_KEEPS(preadv(fd, iov, 3, 612), 4);
	CHECK_KEEPS(preadv2(fd, iov, 3, 400, 0), 8);
	CHECK_KEEPS(preadv2(fd, iov, 3, 400, RWF_NOWAIT), 8);
	CHECK_INT(lseek(fd, 400, SEEK_SET), 400);
	CHECK_KEEPS(preadv2(fd, iov, 3, -1, 0), 8);
	CHECK_ERR(preadv(fd, nowhere, 1, 0), EFAULT);
	CHECK_ERR(preadv(fd, bad + 1, 1, 0), EFAULT);
	CHECK_ERR(readv(fd, nowhere, 1), EFAULT);
	CHECK_ERR(writev(fd, nowhere, 1), EFAULT);
	CHECK_ERR(writev(fd, bad + 1, 1), EFAULT);
	/* What came before the bad address has happened, or not; but no crash. */
	CHECK(preadv(fd, bad, 2, 0) != 6);

	CHECK_KEEPS(fsync(fd), 0);
	CHECK_KEEPS(fdatasync(fd), 0);
	CHECK_ERR(fsync(-1), EBADF);
	CHECK_ERR(fdatasync(-1), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(fsync(p[0]), EINVAL);
	CHECK_ERR(fdatasync(p[1]), EINVAL);
	CHECK_ERR(pwrite(p[1], "x", 1, 0), ESPIPE);
	CHECK_ERR(pread(p[0], buf, 1, 0), ESPIPE);
	CHECK_ERR(pwritev(p[1], iov, 1, 0), ESPIPE);
	CHECK_KEEPS(pwritev2(p[1], iov, 1, -1, 0), 3);
	CHECK_KEEPS(preadv2(p[0], iov, 1, -1, 0), 3);
	CHECK_KEEPS(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE |
			SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER), 0);
	CHECK_ERR(sync_file_range(fd, -1, 0, 0), EINVAL);
	CHECK_ERR(sync_file_range(-1, 0, 0, 0), EBADF);
	CHECK_KEEPS(syncfs(fd), 0);
	CHECK_ERR(syncfs(-1), EBADF);

	char *map = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	map[0] = 'Z';
	CHECK_KEEPS(msync(map, BLOCK, MS_SYNC), 0);
	CHECK_KEEPS(msync(map, BLOCK, MS_ASYNC), 0);
	CHECK_ERR(msync(map + 1, BLOCK, MS_SYNC), EINVAL);
	CHECK_OK(munmap(map, BLOCK));
	/* The lowest page is nobody's; the one just unmapped may be another thread's now. */
	CHECK_ERR(msync((void *)0, BLOCK, MS_SYNC), ENOMEM);
	CHECK_INT(pread(fd, buf, 1, 0), 1);
	CHECK_INT(buf[0], 'Z');
	/* An append-only descriptor appends whatever the offset is. */
	CHECK_OK(fcntl(fd, F_SETFL, O_APPEND));
	CHECK_KEEPS(pwrite(fd, "app", 3, 0), 3);
	CHECK_INT(lseek(fd, 0, SEEK_END), 619);
	close(fd);
	close(p[0]);
	close(p[1]);
	free(buf);
	return arg;
}

/* Each block has its number in it; every thread its own blocks of one file. */
static void *blocks(void *arg)
{
	int mine = (int)(intptr_t)arg, flags[] = { 0, O_DIRECT, O_DSYNC, O_SYNC | O_DIRECT };
	char *buf = aligned();

	for (int round = 0; round < 4; round++) {
		int fd = open(name, O_RDWR | O_CLOEXEC | flags[(round + mine) % 4]);

		/* Some file systems have no O_DIRECT. */
		if (fd < 0 && errno == EINVAL)
			fd = open(name, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		for (int i = 0; i < 4; i++) {
			int number = mine * 4 + i;

			memset(buf, number * 3 + round, BLOCK);
			CHECK_INT(pwrite(fd, buf, BLOCK, number * BLOCK), BLOCK);
			memset(buf, 0xff, BLOCK);
			CHECK_INT(pread(fd, buf, BLOCK, number * BLOCK), BLOCK);
			for (int k = 0; k < BLOCK; k += 512)
				CHECK_INT((unsigned char)buf[k], number * 3 + round);
		}
		struct iovec iov[2] = { { buf, BLOCK }, { buf + 2 * BLOCK, BLOCK } };
		CHECK_INT(preadv(fd, iov, 2, mine * 4 * BLOCK), 2 * BLOCK);
		CHECK_INT((unsigned char)buf[0], mine * 12 + round);
		CHECK_INT((unsigned char)buf[2 * BLOCK], mine * 12 + 3 + round);
		CHECK_INT(pwritev(fd, iov, 2, mine * 4 * BLOCK), 2 * BLOCK);
		CHECK_OK(round % 2 ? fdatasync(fd) : fsync(fd));
		/* Dropped from the cache, it comes from the disk. */
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		CHECK_INT(pread(fd, buf, 3 * BLOCK, mine * 4 * BLOCK), 3 * BLOCK);
		CHECK_INT((unsigned char)buf[BLOCK], mine * 12 + 3 + round);
		close(fd);
	}
	free(buf);
	return NULL;
}

static void all(void *(*fn)(void *), int n)
{
	pthread_t t[THREADS];

	for (intptr_t i = 0; i < n; i++)
		t[i] = start(fn, (void *)i);
	for (int i = 0; i < n; i++)
		finish(t[i]);
}

static unsigned char seen[BLOCKS * 4];

/* One position for all: no record is read twice, none is lost. */
static void *records(void *arg)
{
	unsigned char record[64];
	ssize_t n;

	while ((n = read(shared, record, sizeof(record))) > 0) {
		CHECK_INT(n, sizeof(record));
		CHECK_INT(__atomic_add_fetch(&seen[record[0]], 1, __ATOMIC_SEQ_CST), 1);
		CHECK_INT(record[63], record[0]);
	}
	CHECK_INT(n, 0);
	return arg;
}

static void *appends(void *arg)
{
	unsigned char record[64];

	for (int i = 0; i < 16; i++) {
		memset(record, (int)(intptr_t)arg * 16 + i, sizeof(record));
		CHECK_INT(write(shared, record, sizeof(record)), sizeof(record));
	}
	return NULL;
}

/*
 * Large records, of which only the first block is cached: each is read as a whole, though the rest comes from
 * the disk.  Not so on a file system in memory, which has all of them at once.
 */
static void cache_beginnings(void)
{
	char *buf = aligned();

	CHECK_OK(fsync(shared));
	CHECK_OK(posix_fadvise(shared, 0, 0, POSIX_FADV_DONTNEED));
	/* Nothing is read ahead. */
	CHECK_OK(posix_fadvise(shared, 0, 0, POSIX_FADV_RANDOM));
	for (int i = 0; i < LARGE_RECORDS; i++)
		CHECK_INT(pread(shared, buf, BLOCK, i * LARGE), BLOCK);
	CHECK_INT(lseek(shared, 0, SEEK_SET), 0);
	memset(seen, 0, sizeof(seen));
	free(buf);
}

static void *large_records(void *arg)
{
	unsigned char *record = malloc(LARGE);
	struct iovec iov[2] = { { record, 3 * BLOCK }, { record + 3 * BLOCK, LARGE - 3 * BLOCK } };
	ssize_t n;

	while ((n = (intptr_t)arg % 2 ? readv(shared, iov, 2) : read(shared, record, LARGE)) > 0) {
		CHECK_INT(n, LARGE);
		CHECK_INT(__atomic_add_fetch(&seen[record[0]], 1, __ATOMIC_SEQ_CST), 1);
		for (int k = 0; k < LARGE; k += BLOCK)
			CHECK_INT(record[k], record[0]);
	}
	CHECK_INT(n, 0);
	free(record);
	return NULL;
}

static void whole(void)
{
	char *record = malloc(LARGE);

	for (int i = 0; i < LARGE_RECORDS; i++) {
		memset(record, i, LARGE);
		CHECK_INT(pwrite(shared, record, LARGE, i * LARGE), LARGE);
	}
	free(record);
	for (int round = 0; round < 4; round++) {
		cache_beginnings();
		all(large_records, 8);
		for (int i = 0; i < LARGE_RECORDS; i++)
			CHECK_INT(seen[i], 1);
	}
}

/* Beyond the size that a file may have: short, then SIGXFSZ or EFBIG. */
static void *too_big(void *arg)
{
	struct rlimit limit = { 10000, RLIM_INFINITY };
	char *buf = aligned();
	int fd = temp_file();

	signal(SIGXFSZ, SIG_IGN);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
	CHECK_INT(pwrite(fd, buf, BLOCK, 8000), 2000);
	CHECK_ERR(pwrite(fd, buf, BLOCK, 10000), EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
	free(buf);
	close(fd);
	return arg;
}

int main(void)
{
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_OK(ftruncate(fd, BLOCKS * BLOCK));
	close(fd);
	all(edges, 4);
	puts("edges");
	all(blocks, THREADS);
	puts("blocks");
	CHECK_OK(unlink(name));
	shared = temp_file();
	all(appends, THREADS);
	CHECK_INT(lseek(shared, 0, SEEK_CUR), THREADS * 16 * 64);
	CHECK_INT(lseek(shared, 0, SEEK_SET), 0);
	all(records, THREADS);
	for (int i = 0; i < THREADS * 16; i++)
		CHECK_INT(seen[i], 1);
	puts("records");
	CHECK_OK(ftruncate(shared, 0));
	whole();
	puts("large records");
	all(too_big, 1);
	sync();
	return success();
}
