/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/native_mix.c - threads with an explicit affinity among others.
 *
 * Every kind of meeting point is used between the two halves.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>

#define THREADS 8
#define LOOPS 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t relay[THREADS];
static int pipes[THREADS][2];
static long counter, turn, once_runs, guarded;
static __thread int mine = 5;

static void run_once(void)
{
	usleep(1000);
	once_runs++;
}

static void *nested(void *arg)
{
	return arg;
}

static void *body(void *arg)
{
	int id = (int)(intptr_t)arg;
	struct timespec ts;
	char c;

	CHECK_INT(mine, 5);
	mine = id;
	CHECK_OK(pthread_once(&once, run_once));
	CHECK_INT(once_runs, 1);
	for (int i = 0; i < LOOPS; i++) {
		CHECK_OK(pthread_mutex_lock(&lock));
		counter++;
		CHECK_OK(pthread_mutex_unlock(&lock));
	}
	pthread_barrier_wait(&barrier);
	CHECK_INT(counter, THREADS * LOOPS);
	for (int i = 0; i < 100; i++) {
		CHECK_OK(pthread_mutex_lock(&lock));
		while (turn % THREADS != id)
			CHECK_OK(pthread_cond_wait(&cond, &lock));
		turn++;
		CHECK_OK(pthread_cond_broadcast(&cond));
		CHECK_OK(pthread_mutex_unlock(&lock));
	}
	for (int i = 0; i < 100; i++) {
		CHECK_OK(sem_wait(&relay[id]));
		CHECK_OK(sem_post(&relay[(id + 1) % THREADS]));
	}
	for (int i = 0; i < 100; i++) {
		CHECK_INT(read(pipes[id][0], &c, 1), 1);
		CHECK_INT(write(pipes[(id + 1) % THREADS][1], &c, 1), 1);
	}
	for (int i = 0; i < 100; i++) {
		if (i % 4 == id % 4) {
			CHECK_OK(pthread_rwlock_wrlock(&rwlock));
			guarded++;
		} else {
			CHECK_OK(pthread_rwlock_rdlock(&rwlock));
		}
		CHECK_OK(pthread_rwlock_unlock(&rwlock));
	}
	/* Waits that end by themselves. */
	CHECK_OK(usleep(1000));
	CHECK_OK(poll(NULL, 0, 1));
	CHECK_OK(pthread_mutex_lock(&lock));
	ts = in(CLOCK_REALTIME, MS);
	while (!pthread_cond_timedwait(&cond, &lock, &ts))
		;
	CHECK_OK(pthread_mutex_unlock(&lock));
	/* Threads of either kind make and join threads. */
	CHECK(finish(start(nested, arg)) == arg);
	CHECK_INT(mine, id);
	return arg;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t t[THREADS];
	cpu_set_t cpus;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus));
	CHECK_OK(pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(sem_init(&relay[i], 0, i == 0));
		CHECK_OK(pipe(pipes[i]));
	}
	for (int round = 0; round < 3; round++) {
		counter = turn = 0;
		CHECK_INT(write(pipes[0][1], "x", 1), 1);
		for (intptr_t i = 0; i < THREADS; i++)
			CHECK_OK(pthread_create(&t[i],
					(i + round) % 2 ? &attr : NULL,
					body, (void *)i));
		for (int i = 0; i < THREADS; i++)
			CHECK_INT((intptr_t)finish(t[i]), i);
		char c;
		CHECK_INT(read(pipes[0][0], &c, 1), 1);
	}
	CHECK_INT(guarded, 3 * THREADS * 25);
	return success();
}
