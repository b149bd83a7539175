/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_files.c - a thread that gets a table of descriptors of its own: what
 * it opens and closes then is its own and that of the threads that it makes, and no other
 * thread's.
 */
#include "check.h"

#include <linux/close_range.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { WRITERS = 6, ROUNDS = 40 };

static int by_name(void) { return close_range(1000, 1001, CLOSE_RANGE_UNSHARE); }
static int by_number(void) { return (int)syscall(SYS_close_range, 1000, 1001, CLOSE_RANGE_UNSHARE); }
static int all_of_them(void) { return close_range(3, ~0u, CLOSE_RANGE_UNSHARE); }
static int no_range(void) { return close_range(~0u, ~0u, CLOSE_RANGE_UNSHARE); }
static int unshares(void) { return unshare(CLONE_FILES); }
static int unshares_by_number(void) { return (int)syscall(SYS_unshare, CLONE_FILES); }

static int (*const ways[])(void) = {
	by_name, by_number, all_of_them, no_range, unshares, unshares_by_number,
};

static int (*way)(void);
static int waited[2];
static struct event unshared = EVENT_INIT;

static void *writes(void *arg)
{
	char name[64], text[32], got[32];

	event_wait(&unshared, 1);
	snprintf(name, sizeof(name), "/tmp/thread-files-%d-%ld", (int)getpid(), (long)arg);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
		int n = snprintf(text, sizeof(text), "%ld.%d", (long)arg, i);

		CHECK(fd >= 0);
		usleep(100);
		CHECK_INT(pwrite(fd, text, (size_t)n, 0), n);
		usleep(100);
		CHECK_INT(pread(fd, got, sizeof(got), 0), n);
		CHECK(memcmp(text, got, (size_t)n) == 0);
		CHECK_OK(close(fd));
	}
	CHECK_OK(unlink(name));
	return arg;
}

/* Waits with a descriptor that the other thread closes in its own table. */
static void *reads(void *arg)
{
	char c;

	CHECK_INT(read(waited[0], &c, 1), 1);
	CHECK_INT(fcntl(waited[0], F_GETFD), 0);
	return arg;
}

/* Shares the table of the thread that makes it. */
static void *inherits(void *arg)
{
	int fd = *(int *)arg;

	CHECK(fcntl(fd, F_GETFD) >= 0);
	CHECK_ERR(fcntl(waited[0], F_GETFD), EBADF);
	CHECK_OK(close(fd));
	return arg;
}

static void *changes(void *arg)
{
	int fds[50], fd;

	settle();
	CHECK_OK(way());
	if (way != all_of_them)
		CHECK_OK(close(waited[0]));
	CHECK_ERR(fcntl(waited[0], F_GETFD), EBADF);
	CHECK_ERR(close(waited[0]), EBADF);
	event_post(&unshared);
	/* All numbers that others get meanwhile, and the one that a thread waits with. */
	for (int i = 0; i < 50; i++) {
		fds[i] = open("/dev/null", O_RDWR);
		CHECK(fds[i] >= 0);
		usleep(200);
	}
	for (int i = 1; i < 50; i++)
		CHECK_OK(close(fds[i]));
	CHECK_INT(dup2(1, fds[1]), fds[1]);
	CHECK_OK(close(fds[1]));
	CHECK_OK(close(fds[0]));
	/* The first file gets the number on which others wait. */
	CHECK_INT(fds[0], waited[0]);
	fd = open("/dev/zero", O_RDONLY);
	CHECK_INT(fd, waited[0]);
	fd = fcntl(fd, F_DUPFD, 100);
	CHECK_OK(close(waited[0]));
	CHECK(fd >= 0);
	finish(start(inherits, &fd));
	CHECK_ERR(fcntl(fd, F_GETFD), EBADF);
	return arg;
}

static void run(void)
{
	pthread_t threads[WRITERS], reader, changer;

	CHECK_OK(pipe(waited));
	reader = start(reads, NULL);
	for (intptr_t k = 0; k < WRITERS; k++)
		threads[k] = start(writes, (void *)k);
	changer = start(changes, NULL);
	finish(changer);
	for (int k = 0; k < WRITERS; k++)
		finish(threads[k]);
	CHECK_INT(write(waited[1], "x", 1), 1);
	finish(reader);
}

int main(void)
{
	/* What a shell has left open would be closed by all_of_them(), and its numbers used again. */
	CHECK_OK(close_range(3, ~0u, 0));
	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (!child) {
			way = ways[i];
			run();
			_exit(0);
		}
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK_INT(status, 0);
	}
	return success();
}
