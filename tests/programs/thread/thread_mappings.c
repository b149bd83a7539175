/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_mappings.c - a process that has nearly as many mappings as it may have
 * (vm.max_map_count) makes its first threads: they run, or there is no room for them; when there is room again,
 * threads run.
 *
 *	thread_mappings [STEP]
 *
 * tries with 0, STEP, 2 * STEP, ... mappings left.
 */
#include "check.h"

#include <sys/mman.h>
#include <sys/socket.h>

enum { THREADS = 8, LEFT_MOST = 30, PAGE = 4096 };

static long most;			/* mappings */
static struct {
	char *begin;
	size_t size;
} filler;

static void *talks(void *arg)
{
	int pair[2];
	char c = 0;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_INT(write(pair[0], "x", 1), 1);
	CHECK_INT(read(pair[1], &c, 1), 1);
	CHECK_INT(c, 'x');
	usleep(1000);
	CHECK_OK(close(pair[0]));
	CHECK_OK(close(pair[1]));
	return arg;
}

/* Every second page has another protection, so that each is a mapping: as many as there may be, but those left. */
static void fill(int left)
{
	char *page;

	filler.size = (size_t)(most + 2) * PAGE;
	filler.begin = mmap(NULL, filler.size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(filler.begin != MAP_FAILED);
	page = filler.begin + PAGE;
	while (mprotect(page, PAGE, PROT_NONE) == 0)
		page += 2 * PAGE;
	CHECK_INT(errno, ENOMEM);
	CHECK(page < filler.begin + filler.size);
	/* Each page that is again like its neighbours gives two back. */
	for (int back = 0; back < left; back += 2) {
		page -= 2 * PAGE;
		CHECK_OK(mprotect(page, PAGE, PROT_READ));
	}
	if (left % 2)
		CHECK_OK(mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC));
}

/* Returns how many threads were made, and have ended. */
static int make_threads(void)
{
	pthread_t t[THREADS];
	int made = 0, err = 0;

	while (made < THREADS && (err = pthread_create(&t[made], NULL, talks, NULL)) == 0)
		made++;
	CHECK(err == 0 || err == EAGAIN);
	for (int i = 0; i < made; i++)
		CHECK_OK(pthread_join(t[i], NULL));
	return made;
}

static void with(int left)
{
	fill(left);
	make_threads();
	CHECK_OK(munmap(filler.begin, filler.size));
	CHECK_INT(make_threads(), THREADS);
}

int main(int argc, char **argv)
{
	int step = argc > 1 ? atoi(argv[1]) : 1;
	FILE *file = fopen("/proc/sys/vm/max_map_count", "r");

	CHECK(file && fscanf(file, "%ld", &most) == 1);
	CHECK_OK(fclose(file));
	/* Where there may be a million, that many cost seconds each time. */
	if (most > 200 * 1000)
		step = LEFT_MOST / 3;
	for (int left = 0; left <= LEFT_MOST; left += step)
		run_in_child(with, left);
	return success();
}
