/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/cond_basic.c - signal and broadcast, and that a signal without a waiter
 * is not remembered.
 */
#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, woken, tickets;

static void *waiter(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	waiting++;
	while (!tickets)
		CHECK_OK(pthread_cond_wait(&cond, &lock));
	tickets--;
	woken++;
	CHECK_INT(pthread_mutex_trylock(&lock), EBUSY);
	CHECK_OK(pthread_mutex_unlock(&lock));
	return arg;
}

static void until(int *what, int n)
{
	for (;;) {
		int have;

		CHECK_OK(pthread_mutex_lock(&lock));
		have = *what;
		CHECK_OK(pthread_mutex_unlock(&lock));
		if (have >= n)
			return;
		usleep(100);
	}
}

static void give(int n, int broadcast)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	tickets += n;
	CHECK_OK(broadcast ? pthread_cond_broadcast(&cond) :
			     pthread_cond_signal(&cond));
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void wakes(void)
{
	pthread_t t[20];

	/* With nobody there, neither does anything. */
	CHECK_OK(pthread_cond_signal(&cond));
	CHECK_OK(pthread_cond_broadcast(&cond));

	for (int i = 0; i < 20; i++)
		t[i] = start(waiter, NULL);
	until(&waiting, 20);
	for (int i = 1; i <= 5; i++) {
		give(1, 0);
		until(&woken, i);
	}
	/* Five signals, without the mutex, each for somebody else. */
	CHECK_OK(pthread_mutex_lock(&lock));
	tickets = 5;
	CHECK_OK(pthread_mutex_unlock(&lock));
	for (int i = 0; i < 5; i++)
		CHECK_OK(pthread_cond_signal(&cond));
	until(&woken, 10);
	give(10, 1);
	for (int i = 0; i < 20; i++)
		finish(t[i]);
	CHECK_INT(woken, 20);
	CHECK_INT(tickets, 0);
	puts("wakes");
}

static void not_remembered(void)
{
	struct timespec ts;

	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_cond_signal(&cond));
	CHECK_OK(pthread_cond_broadcast(&cond));
	ts = in(CLOCK_REALTIME, 5 * MS);
	CHECK_INT(pthread_cond_timedwait(&cond, &lock, &ts), ETIMEDOUT);
	CHECK_OK(pthread_mutex_unlock(&lock));
	puts("not remembered");
}

struct own {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int done;
};

static void *signaller(void *arg)
{
	struct own *own = arg;

	CHECK_OK(pthread_mutex_lock(&own->lock));
	own->done = 1;
	CHECK_OK(pthread_cond_broadcast(&own->cond));
	CHECK_OK(pthread_mutex_unlock(&own->lock));
	return NULL;
}

/* With each type of mutex; destroyed as soon as nobody waits. */
static void types(void)
{
	static const int type[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK,
				    PTHREAD_MUTEX_ADAPTIVE_NP };

	for (int i = 0; i < 200; i++) {
		struct own own = { .done = 0 };
		pthread_mutexattr_t attr;
		pthread_t t;

		CHECK_OK(pthread_mutexattr_init(&attr));
		CHECK_OK(pthread_mutexattr_settype(&attr, type[i % 4]));
		CHECK_OK(pthread_mutex_init(&own.lock, &attr));
		CHECK_OK(pthread_cond_init(&own.cond, NULL));
		CHECK_OK(pthread_mutex_lock(&own.lock));
		t = start(signaller, &own);
		while (!own.done)
			CHECK_OK(pthread_cond_wait(&own.cond, &own.lock));
		CHECK_OK(pthread_mutex_unlock(&own.lock));
		CHECK_OK(pthread_cond_destroy(&own.cond));
		finish(t);
		CHECK_OK(pthread_mutex_destroy(&own.lock));
		/* Nothing may be looked at any more. */
		memset(&own, 0xff, sizeof(own));
	}
	puts("types");
}

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static int guarded[2];
static int serial;

static void *readers_writers(void *arg)
{
	int r;

	for (int i = 0; i < 200; i++) {
		if ((i + (intptr_t)arg) % 5 == 0) {
			CHECK_OK(pthread_rwlock_wrlock(&rw));
			guarded[0]++;
			if (i % 50 == 0)
				sched_yield();
			guarded[1]++;
		} else {
			CHECK_OK(pthread_rwlock_rdlock(&rw));
			CHECK_INT(guarded[0], guarded[1]);
		}
		CHECK_OK(pthread_rwlock_unlock(&rw));
	}
	for (int i = 0; i < 50; i++) {
		r = pthread_barrier_wait(&barrier);
		CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
		if (r)
			__atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void relatives(void)
{
	pthread_t t[8];

	CHECK_OK(pthread_barrier_init(&barrier, NULL, 8));
	for (intptr_t i = 0; i < 8; i++)
		t[i] = start(readers_writers, (void *)i);
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	CHECK_INT(guarded[0], 8 * 40);
	CHECK_INT(serial, 50);
	CHECK_OK(pthread_barrier_destroy(&barrier));
	CHECK_INT(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	puts("rwlock and barrier");
}

int main(void)
{
	wakes();
	not_remembered();
	types();
	relatives();
	CHECK_OK(pthread_cond_destroy(&cond));
	return success();
}
