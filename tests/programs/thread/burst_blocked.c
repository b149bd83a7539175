/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/burst_blocked.c - threads run for some microseconds at a time, for long; then some wait for
 * each other in the kernel, at both ends of a FIFO.  faults.sh runs it where no more kernel threads can be had.
 */
#include "check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { NAPPERS = 3, PAIRS = 2, LONG_MS = 1200 };

static _Atomic bool over;
static char fifo[PAIRS][64];

static void *naps(void *arg)
{
	while (!over)
		usleep(500);
	return arg;
}

static void *reads(void *name)
{
	int fd = open(name, O_RDONLY);
	char c = 0;

	CHECK(fd >= 0);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(c, 'x');
	CHECK_OK(close(fd));
	return NULL;
}

static void *writes(void *name)
{
	int fd;

	usleep(20000);
	fd = open(name, O_WRONLY);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, "x", 1), 1);
	CHECK_OK(close(fd));
	return NULL;
}

int main(void)
{
	pthread_t napper[NAPPERS], reader[PAIRS], writer[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		CHECK(snprintf(fifo[i], sizeof(fifo[i]), "/tmp/burst_blocked.%d.%d", (int)getpid(), i) > 0);
		CHECK_OK(mkfifo(fifo[i], 0600));
	}
	for (int i = 0; i < NAPPERS; i++)
		napper[i] = start(naps, NULL);
	usleep(LONG_MS * 1000);
	for (int i = 0; i < PAIRS; i++)
		reader[i] = start(reads, fifo[i]);
	for (int i = 0; i < PAIRS; i++)
		writer[i] = start(writes, fifo[i]);
	for (int i = 0; i < PAIRS; i++) {
		finish(reader[i]);
		finish(writer[i]);
		CHECK_OK(unlink(fifo[i]));
	}
	over = true;
	for (int i = 0; i < NAPPERS; i++)
		finish(napper[i]);
	return success();
}
