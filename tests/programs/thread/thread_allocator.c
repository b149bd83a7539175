/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_allocator.c - no thread gets memory while one thread computes
 * and one blocks in a system call of its own, until a third thread has slept: as if the third
 * thread held the allocator's lock.
 */
#include "check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

void *__libc_calloc(size_t count, size_t size);

static atomic_bool closed, stop;
static struct event spins = EVENT_INIT, blocks = EVENT_INIT;
static int ends[2];

/* libc's, too: for the thread-local storage of new threads. */
void *calloc(size_t count, size_t size)
{
	const size_t some = 1 << 20;
	void *reserve = mmap(NULL, some, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(reserve != MAP_FAILED);
	CHECK_OK(munmap(reserve, some));
	while (closed)
		usleep(100);
	return __libc_calloc(count, size);
}

static void *computes(void *arg)
{
	event_wait(&spins, 1);
	closed = true;
	event_post(&blocks);
	while (!stop)
		;
	return arg;
}

static void *is_blocked(void *arg)
{
	char byte;

	event_wait(&blocks, 1);
	CHECK_INT((int)read_raw(ends[0], &byte, 1), 1);
	return arg;
}

static void *frees_all(void *arg)
{
	event_post(&spins);
	usleep(200000);
	closed = false;
	stop = true;
	CHECK_INT((int)write(ends[1], "x", 1), 1);
	return arg;
}

int main(void)
{
	pthread_t t[3];

	CHECK_INT(pipe(ends), 0);
	t[0] = start(computes, NULL);
	t[1] = start(is_blocked, NULL);
	usleep(50000);
	t[2] = start(frees_all, NULL);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	return success();
}
