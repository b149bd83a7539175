/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/lock_burst.c - a hundred threads wait for a lock of the kernel at once,
 * again and again; the kernel threads that these waits need end afterwards.
 */
#include "check.h"

#include <dirent.h>
#include <sys/file.h>

enum { THREADS = 100, ROUNDS = 3, FEW = 32 };

static char name[] = "/tmp/check-XXXXXX";
static struct event begun = EVENT_INIT;
static int pipes[THREADS][2];

static void *locks(void *arg)
{
	int fd = open(name, O_RDONLY);

	CHECK(fd >= 0);
	event_post(&begun);
	CHECK_OK(flock(fd, LOCK_SH));
	close(fd);
	return arg;
}

/* Requests that stay in flight all the time. */
static void *reads(void *arg)
{
	char c;

	CHECK_INT(read(pipes[(intptr_t)arg][0], &c, 1), 1);
	return NULL;
}

static int kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void burst(void)
{
	pthread_t t[THREADS];
	int fd = open(name, O_RDONLY);

	CHECK(fd >= 0);
	CHECK_OK(flock(fd, LOCK_EX));
	begun.count = 0;
	for (int i = 0; i < THREADS; i++)
		t[i] = start(locks, NULL);
	event_wait(&begun, THREADS);
	settle();
	CHECK_OK(flock(fd, LOCK_UN));
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	close(fd);
}

int main(void)
{
	pthread_t t[8];
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	close(fd);
	for (int i = 0; i < ROUNDS; i++)
		burst();
	puts("bursts");
	/* It takes a second or two; natively they are gone at once. */
	for (int i = 0; kernel_threads() > FEW; i++) {
		CHECK(i < 400);
		usleep(100000);
	}
	puts("few again");
	/* Those that come after them, with requests in flight the while. */
	for (intptr_t i = 0; i < 8; i++) {
		CHECK_OK(pipe(pipes[i]));
		t[i] = start(reads, (void *)i);
	}
	for (int i = 0; i < ROUNDS; i++)
		burst();
	for (int i = 0; i < 8; i++) {
		CHECK_INT(write(pipes[i][1], "x", 1), 1);
		finish(t[i]);
	}
	CHECK_OK(unlink(name));
	return success();
}
