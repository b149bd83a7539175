/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_async.c - asynchronous cancellation: while computing, while
 * waiting where there is no cancellation point, by changing the type; cancellation in
 * cleanup handlers and destructors.
 */
#include "check.h"

#include <semaphore.h>

static struct event ready = EVENT_INIT;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int cleaned, destroyed, in_round;
static sem_t sem;

static void cleanup(void *arg)
{
	++*(int *)arg;
}

static void make_asynchronous(void)
{
	int old;

	CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
	CHECK_INT(old, PTHREAD_CANCEL_DEFERRED);
}

static void *computes(void *arg)
{
	volatile unsigned long n = 0;

	pthread_cleanup_push(cleanup, &cleaned);
	event_post(&ready);
	make_asynchronous();
	for (;;)
		n++;
	pthread_cleanup_pop(0);
	return arg;
}

/* Not to be done, says POSIX; done it is, and libc's threads can be cancelled there. */
static void *waits_for_mutex(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	event_post(&ready);
	make_asynchronous();
	CHECK_OK(pthread_mutex_lock(&held));
	pthread_cleanup_pop(0);
	return arg;
}

static void *waits_for_rwlock(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	event_post(&ready);
	make_asynchronous();
	CHECK_OK(pthread_rwlock_rdlock(&rwlock));
	pthread_cleanup_pop(0);
	return arg;
}

static void unlock(void *arg)
{
	/* It is ours again, whatever the type of cancellation. */
	CHECK_INT(pthread_mutex_trylock(arg), EBUSY);
	CHECK_OK(pthread_mutex_unlock(arg));
	cleaned++;
}

static void *waits_for_cond(void *arg)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	CHECK_OK(pthread_mutex_lock(&mutex));
	pthread_cleanup_push(unlock, &mutex);
	event_post(&ready);
	make_asynchronous();
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return arg;
}

static void *waits_for_sem(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	event_post(&ready);
	make_asynchronous();
	sem_wait(&sem);
	pthread_cleanup_pop(0);
	return arg;
}

static void *sleeps(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	event_post(&ready);
	make_asynchronous();
	sleep(3600);
	pthread_cleanup_pop(0);
	return arg;
}

/* A request that is pending is acted on as soon as it may be. */
static void *becomes_asynchronous(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	CHECK_OK(pthread_cancel(pthread_self()));
	CHECK_INT(cleaned, 0);
	event_post(&ready);
	make_asynchronous();
	CHECK(0);
	pthread_cleanup_pop(0);
	return arg;
}

static void *becomes_enabled(void *arg)
{
	pthread_cleanup_push(cleanup, &cleaned);
	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	make_asynchronous();
	CHECK_OK(pthread_cancel(pthread_self()));
	CHECK_INT(cleaned, 0);
	event_post(&ready);
	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	CHECK(0);
	pthread_cleanup_pop(0);
	return arg;
}

static void cancelled(const char *name, void *(*fn)(void *))
{
	for (int early = 0; early < 2; early++) {
		pthread_t t;

		cleaned = ready.count = 0;
		t = start(fn, NULL);
		event_wait(&ready, 1);
		if (!early)
			settle();
		CHECK_OK(pthread_cancel(t));
		CHECK(finish(t) == PTHREAD_CANCELED);
		CHECK_INT(cleaned, 1);
	}
	puts(name);
}

/* ---- ends within ends --------------------------------------------------- */

/* Cleanup handlers may come to cancellation points: no second cancellation. */
static void comes_to_points(void *arg)
{
	pthread_testcancel();
	usleep(1000);
	cleanup(arg);
}

static void *cancelled_twice(void *arg)
{
	pthread_cleanup_push(comes_to_points, &cleaned);
	pthread_cleanup_push(comes_to_points, &cleaned);
	CHECK_OK(pthread_cancel(pthread_self()));
	CHECK_OK(pthread_cancel(pthread_self()));
	pthread_testcancel();
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return arg;
}

/* Destructors run after a return, too, and can be cancelled: the rest still runs. */
static void cancelled_destructor(void *value)
{
	destroyed++;
	if (in_round == 0) {
		in_round = 1;
		CHECK_OK(pthread_setspecific(key, value));
		CHECK_OK(pthread_cancel(pthread_self()));
		pthread_testcancel();
		CHECK(0);
	}
}

static void *returns(void *arg)
{
	CHECK_OK(pthread_setspecific(key, &key));
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK_OK(sem_init(&sem, 0, 0));
	CHECK_OK(pthread_mutex_lock(&held));
	CHECK_OK(pthread_rwlock_wrlock(&rwlock));
	cancelled("computing", computes);
	cancelled("mutex", waits_for_mutex);
	cancelled("rwlock", waits_for_rwlock);
	cancelled("cond", waits_for_cond);
	cancelled("sem", waits_for_sem);
	cancelled("sleep", sleeps);
	CHECK_OK(pthread_mutex_unlock(&held));
	CHECK_OK(pthread_mutex_lock(&held));
	CHECK_OK(pthread_cond_destroy(&cond));

	for (int i = 0; i < 2; i++) {
		cleaned = 0;
		t = start(i ? becomes_enabled : becomes_asynchronous, NULL);
		CHECK(finish(t) == PTHREAD_CANCELED);
		CHECK_INT(cleaned, 1);
	}
	puts("pending");

	cleaned = 0;
	CHECK(finish(start(cancelled_twice, NULL)) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 2);
	puts("cleanup");

	CHECK_OK(pthread_key_create(&key, cancelled_destructor));
	CHECK(finish(start(returns, &key)) == PTHREAD_CANCELED);
	CHECK_INT(destroyed, 2);
	CHECK(finish(start(returns, &key)) == &key);
	CHECK_INT(destroyed, 3);
	puts("destructor");
	return success();
}
