/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_native.c - cancellation of threads that wait where only
 * libc or the kernel can wait, of one that never waits, and of threads with an
 * affinity of their own in waits that need neither.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/select.h>

static struct event ready = EVENT_INIT;
static int silent[2];

static void cleanup(void *arg)
{
	++*(int *)arg;
}

static void *in_select(void *arg)
{
	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	for (;;)
		select(0, NULL, NULL, NULL, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_fgets(void *arg)
{
	FILE *file = fdopen(dup(silent[0]), "r");
	char line[16];

	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	while (fgets(line, sizeof(line), file))
		continue;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_a_loop(void *arg)
{
	volatile unsigned long spins = 0;

	CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	for (;;)
		spins++;
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

static void unlock(void *arg)
{
	(void)arg;
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void *in_cond(void *arg)
{
	struct timespec ts = in(CLOCK_REALTIME, 60000 * MS);

	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	CHECK_OK(pthread_mutex_lock(&lock));
	pthread_cleanup_push(unlock, NULL);
	while (!pthread_cond_timedwait(&cond, &lock, &ts))
		continue;
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_sem(void *arg)
{
	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	sem_wait(&sem);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *sleeps(void *arg)
{
	usleep(30000000);
	return arg;
}

static void *in_join(void *arg)
{
	pthread_t t = start(sleeps, NULL);

	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	pthread_join(t, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(const char *name, void *(*fn)(void *), int affine)
{
	int cleaned = 0;
	pthread_t t;

	ready.count = 0;
	t = start_as(affine, fn, &cleaned);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
	puts(name);
}

int main(void)
{
	CHECK_OK(pipe(silent));
	CHECK_OK(sem_init(&sem, 0, 0));
	for (int i = 0; i < 20; i++) {
		cancel("select", in_select, 0);
		cancel("fgets", in_fgets, 0);
		cancel("loop", in_a_loop, 0);
		cancel("cond", in_cond, i % 2);
		cancel("sem", in_sem, i % 2);
		cancel("join", in_join, i % 2);
	}
	return success();
}
