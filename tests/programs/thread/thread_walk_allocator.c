/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_walk_allocator.c - in a program with an allocator of its own the callback of
 * dl_iterate_phdr waits for threads that it makes, of a first and of a second life.
 */
#include "check.h"

#include <link.h>

void *__libc_calloc(size_t count, size_t size);

static __thread int value = 7;

/* libc's, too: for the thread-local storage of new threads. */
void *calloc(size_t count, size_t size)
{
	return __libc_calloc(count, size);
}

static void *life(void *arg)
{
	CHECK_INT(value++, 7);
	return arg;
}

static int makes_threads(struct dl_phdr_info *info, size_t size, void *arg)
{
	pthread_t t[3];

	(void)info;
	(void)size;
	for (size_t i = 0; i < COUNT(t); i++)
		t[i] = start(life, arg);
	for (size_t i = 0; i < COUNT(t); i++)
		CHECK(finish(t[i]) == arg);
	return 1;
}

int main(void)
{
	int word;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(dl_iterate_phdr(makes_threads, &word), 1);
		CHECK(finish(start(life, &word)) == &word);
	}
	return success();
}
