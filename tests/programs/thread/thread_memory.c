/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_memory.c - what libc keeps for a thread (malloc's cache, the
 * storage of thread-specific data) is given back where the thread ends, and the next thread
 * has its own.
 */
#include "check.h"

#include <malloc.h>

#define THREADS 16
#define ROUNDS 4
#define SIZES 60		/* of chunks, in steps of 16 bytes: those that the cache has */
#define EACH 7

static pthread_key_t late_key;
static pthread_barrier_t all_have;

/* In bytes; what caches hold counts as in use. */
static long in_use(void)
{
	return (long)mallinfo2().uordblks;
}

static void fill_cache(void)
{
	static __thread void *chunks[SIZES][EACH];

	for (int size = 0; size < SIZES; size++)
		for (int i = 0; i < EACH; i++)
			CHECK(chunks[size][i] = malloc((size_t)size * 16 + 24));
	for (int size = 0; size < SIZES; size++)
		for (int i = 0; i < EACH; i++)
			free(chunks[size][i]);
}

/* The thread keeps what it frees, as each new thread does. */
static void *alone(void *arg)
{
	enum { FEW = 4, SIZE = 1000 };
	void *chunks[FEW];
	long before;

	for (int i = 0; i < FEW; i++)
		CHECK(chunks[i] = malloc(SIZE));
	before = in_use();
	for (int i = 0; i < FEW; i++)
		free(chunks[i]);
	/* Not equal: the C library may make or free a record (of some 300 bytes) for a kernel thread meanwhile. */
	CHECK(in_use() > before - SIZE);
	fill_cache();
	CHECK(in_use() - before > 50000);
	CHECK_OK(pthread_setspecific(late_key, arg));
	return arg;
}

static void *together(void *arg)
{
	fill_cache();
	CHECK_OK(pthread_setspecific(late_key, arg));
	pthread_barrier_wait(&all_have);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	long before;

	/* libc has room for the first 32 keys in each thread, and gets more for the others. */
	for (int i = 0; i < 64; i++)
		CHECK_OK(pthread_key_create(&late_key, NULL));
	CHECK_OK(pthread_barrier_init(&all_have, NULL, THREADS));
	/* Arenas, and stacks that stay for other threads, are there from now on. */
	for (int i = 0; i < THREADS; i++)
		t[i] = start(together, main);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	before = in_use();
	for (int i = 0; i < 4 * THREADS; i++)
		finish(start(alone, main));
	CHECK(in_use() - before < 30000);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++)
			t[i] = start(together, main);
		for (int i = 0; i < THREADS; i++)
			finish(t[i]);
		CHECK(in_use() - before < 30000);
	}
	return success();
}
