/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/sem_stress.c - semaphores as counter, lock and relay. */
#include "check.h"

#include <semaphore.h>

#define THREADS 12
#define LOOPS 2000

static sem_t lock, items, relay[THREADS];
static long counter;
static int inside, limit_seen;
static sem_t limit;

static void *locked(void *arg)
{
	for (int i = 0; i < LOOPS; i++) {
		if (i % 3)
			CHECK_OK(sem_wait(&lock));
		else
			while (sem_trywait(&lock)) {
				CHECK_INT(errno, EAGAIN);
				sched_yield();
			}
		counter++;
		CHECK_OK(sem_post(&lock));
	}
	return arg;
}

static void *posts(void *arg)
{
	for (int i = 0; i < LOOPS; i++)
		CHECK_OK(sem_post(&items));
	return arg;
}

static void *takes(void *arg)
{
	for (int i = 0; i < LOOPS; i++) {
		struct timespec ts = in(CLOCK_REALTIME, i % 2 ? 0 : 50000);

		if (i % 4 < 2 && !sem_timedwait(&items, &ts))
			continue;
		CHECK_OK(sem_wait(&items));
	}
	return arg;
}

static void *relays(void *arg)
{
	intptr_t id = (intptr_t)arg;

	for (int i = 0; i < 300; i++) {
		CHECK_OK(sem_wait(&relay[id]));
		CHECK_INT(counter % THREADS, id);
		counter++;
		CHECK_OK(sem_post(&relay[(id + 1) % THREADS]));
	}
	return NULL;
}

static void *limited(void *arg)
{
	for (int i = 0; i < 20; i++) {
		int n;

		CHECK_OK(sem_wait(&limit));
		n = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		CHECK(n <= 3);
		if (n == 3)
			__atomic_store_n(&limit_seen, 1, __ATOMIC_SEQ_CST);
		usleep(100);
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		CHECK_OK(sem_post(&limit));
	}
	return arg;
}

static void run(void *(*even)(void *), void *(*odd)(void *))
{
	pthread_t t[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(i % 2 ? odd : even, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
}

int main(void)
{
	int v;

	CHECK_OK(sem_init(&lock, 0, 1));
	CHECK_OK(sem_init(&items, 0, 0));
	CHECK_OK(sem_init(&limit, 0, 3));
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(sem_init(&relay[i], 0, i == 0));
	run(locked, locked);
	CHECK_INT(counter, THREADS * LOOPS);
	puts("lock");
	run(takes, posts);
	CHECK_OK(sem_getvalue(&items, &v));
	CHECK_INT(v, 0);
	puts("items");
	counter = 0;
	run(relays, relays);
	CHECK_INT(counter, THREADS * 300);
	puts("relay");
	run(limited, limited);
	CHECK(limit_seen);
	puts("limit");
	return success();
}
