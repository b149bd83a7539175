/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/c11_threads.c - <threads.h>, whole: in libc these do not pass
 * through the pthread functions.
 */
#include "check.h"

#include <limits.h>
#include <threads.h>

#define THREADS 12

static mtx_t lock;
static cnd_t cond;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static thread_local int local = 7;
static int counter, turn, once_runs, destroyed, waiting, open_;

static int returns(void *arg)
{
	CHECK_INT(local, 7);
	local = 8;
	return (int)(intptr_t)arg;
}

static int exits(void *arg)
{
	thrd_exit((int)(intptr_t)arg);
}

static int sleeps(void *arg)
{
	struct timespec ts = to_timespec(3 * MS);

	CHECK_INT(thrd_sleep(&ts, NULL), 0);
	return *(int *)arg = 5;
}

static void threads(void)
{
	thrd_t t[THREADS];
	int r, v = 0;

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_INT(thrd_create(&t[i], i % 2 ? returns : exits, (void *)(i - 3)), thrd_success);
	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(thrd_join(t[i], &r), thrd_success);
		CHECK_INT(r, i - 3);
	}
	CHECK_INT(thrd_create(&t[0], returns, (void *)(intptr_t)INT_MIN), thrd_success);
	CHECK_INT(thrd_join(t[0], &r), thrd_success);
	CHECK_INT(r, INT_MIN);
	CHECK_INT(thrd_create(&t[0], sleeps, &v), thrd_success);
	CHECK_INT(thrd_join(t[0], NULL), thrd_success);
	CHECK_INT(v, 5);
	CHECK_INT(thrd_join(thrd_current(), NULL), thrd_error);
	CHECK(thrd_equal(thrd_current(), thrd_current()));
	CHECK(thrd_equal(thrd_current(), pthread_self()));
	CHECK_INT(local, 7);
	CHECK_INT(thrd_create(&t[0], returns, NULL), thrd_success);
	CHECK_INT(thrd_detach(t[0]), thrd_success);
	puts("threads");
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static int is_woken(void *arg)
{
	struct timespec ts = to_timespec(60000 * MS), rest = { 0, 0 };

	__atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
	CHECK_INT(thrd_sleep(&ts, &rest), -1);
	CHECK(rest.tv_sec >= 20 && rest.tv_sec < 60);
	return arg != NULL;
}

static void sleeping(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec ts = to_timespec(10 * MS), rest = { -1, -1 };
	long long t0 = now(CLOCK_MONOTONIC);
	thrd_t t;

	CHECK_INT(thrd_sleep(&ts, &rest), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 10 * MS);
	CHECK_INT(rest.tv_nsec, -1);
	ts.tv_nsec = 1000000000;
	CHECK_INT(thrd_sleep(&ts, NULL), -2);
	ts.tv_nsec = -1;
	CHECK_INT(thrd_sleep(&ts, &rest), -2);
	thrd_yield();
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	CHECK_INT(thrd_create(&t, is_woken, NULL), thrd_success);
	while (!__atomic_load_n(&waiting, __ATOMIC_SEQ_CST))
		thrd_yield();
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	CHECK_INT(thrd_join(t, NULL), thrd_success);
	CHECK_INT(handled, 1);
	puts("sleeping");
}

static int counts(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		switch (i % 3) {
		case 0:
			CHECK_INT(mtx_lock(&lock), thrd_success);
			break;
		case 1:
			while (mtx_trylock(&lock) != thrd_success)
				thrd_yield();
			break;
		default: {
			struct timespec ts = in(CLOCK_REALTIME, 60000 * MS);

			CHECK_INT(mtx_timedlock(&lock, &ts), thrd_success);
		}
		}
		counter++;
		if (i % 100 == 0)
			thrd_yield();
		CHECK_INT(mtx_unlock(&lock), thrd_success);
	}
	return arg != NULL;
}

static int cannot_lock(void *arg)
{
	long long t0;
	struct timespec ts;

	CHECK_INT(mtx_trylock(&lock), thrd_busy);
	ts = to_timespec(0);
	CHECK_INT(mtx_timedlock(&lock, &ts), thrd_timedout);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 5 * MS);
	CHECK_INT(mtx_timedlock(&lock, &ts), thrd_timedout);
	CHECK(now(CLOCK_REALTIME) >= t0 + 5 * MS);
	ts.tv_nsec = 1000000000;
	CHECK_INT(mtx_timedlock(&lock, &ts), thrd_error);
	return arg != NULL;
}

static void run(int (*fn)(void *), int n)
{
	thrd_t t[THREADS];

	for (intptr_t i = 0; i < n; i++)
		CHECK_INT(thrd_create(&t[i], fn, (void *)i), thrd_success);
	for (int i = 0; i < n; i++)
		CHECK_INT(thrd_join(t[i], NULL), thrd_success);
}

static void mutexes(void)
{
	static const int types[] = {
		mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive,
	};

	for (size_t i = 0; i < COUNT(types); i++) {
		counter = 0;
		CHECK_INT(mtx_init(&lock, types[i]), thrd_success);
		run(counts, THREADS);
		CHECK_INT(counter, THREADS * 1000);
		CHECK_INT(mtx_lock(&lock), thrd_success);
		run(cannot_lock, 2);
		if (types[i] & mtx_recursive) {
			CHECK_INT(mtx_lock(&lock), thrd_success);
			CHECK_INT(mtx_trylock(&lock), thrd_success);
			CHECK_INT(mtx_unlock(&lock), thrd_success);
			CHECK_INT(mtx_unlock(&lock), thrd_success);
			run(cannot_lock, 1);
		} else {
			CHECK_INT(mtx_trylock(&lock), thrd_busy);
		}
		CHECK_INT(mtx_unlock(&lock), thrd_success);
		mtx_destroy(&lock);
	}
	puts("mutexes");
}

static int takes_turns(void *arg)
{
	for (int i = 0; i < 50; i++) {
		CHECK_INT(mtx_lock(&lock), thrd_success);
		while (turn % THREADS != (int)(intptr_t)arg)
			CHECK_INT(cnd_wait(&cond, &lock), thrd_success);
		turn++;
		CHECK_INT(cnd_broadcast(&cond), thrd_success);
		CHECK_INT(mtx_unlock(&lock), thrd_success);
	}
	return 0;
}

static int waits_for_one(void *arg)
{
	CHECK_INT(mtx_lock(&lock), thrd_success);
	waiting++;
	while (!open_)
		CHECK_INT(cnd_wait(&cond, &lock), thrd_success);
	open_--;
	CHECK_INT(mtx_unlock(&lock), thrd_success);
	return arg != NULL;
}

static void conditions(void)
{
	struct timespec ts;
	thrd_t t[4];
	long long t0;
	int r;

	CHECK_INT(mtx_init(&lock, mtx_timed), thrd_success);
	CHECK_INT(cnd_init(&cond), thrd_success);
	run(takes_turns, THREADS);
	CHECK_INT(turn, 50 * THREADS);

	waiting = open_ = 0;
	for (int i = 0; i < 4; i++)
		CHECK_INT(thrd_create(&t[i], waits_for_one, NULL), thrd_success);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(mtx_lock(&lock), thrd_success);
		open_++;
		CHECK_INT(cnd_signal(&cond), thrd_success);
		CHECK_INT(mtx_unlock(&lock), thrd_success);
	}
	for (int i = 0; i < 4; i++)
		CHECK_INT(thrd_join(t[i], NULL), thrd_success);
	CHECK_INT(open_, 0);

	CHECK_INT(mtx_lock(&lock), thrd_success);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 5 * MS);
	do
		r = cnd_timedwait(&cond, &lock, &ts);
	while (r == thrd_success);
	CHECK_INT(r, thrd_timedout);
	CHECK(now(CLOCK_REALTIME) >= t0 + 5 * MS);
	ts.tv_nsec = -1;
	CHECK_INT(cnd_timedwait(&cond, &lock, &ts), thrd_error);
	CHECK_INT(mtx_trylock(&lock), thrd_busy);
	CHECK_INT(mtx_unlock(&lock), thrd_success);
	cnd_destroy(&cond);
	mtx_destroy(&lock);
	puts("conditions");
}

static void run_once(void)
{
	struct timespec ts = to_timespec(2 * MS);

	thrd_sleep(&ts, NULL);
	once_runs++;
}

static void destroy(void *value)
{
	CHECK(value != NULL);
	__atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static int specific(void *arg)
{
	call_once(&once, run_once);
	CHECK_INT(once_runs, 1);
	CHECK(tss_get(key) == NULL);
	CHECK_INT(tss_set(key, arg), thrd_success);
	thrd_yield();
	CHECK(tss_get(key) == arg);
	return 0;
}

static void specifics(void)
{
	CHECK_INT(tss_create(&key, destroy), thrd_success);
	run(specific, THREADS);
	/* The first one's value is NULL. */
	CHECK_INT(destroyed, THREADS - 1);
	CHECK(tss_get(key) == NULL);
	CHECK_INT(tss_set(key, &key), thrd_success);
	CHECK(tss_get(key) == &key);
	tss_delete(key);
	puts("specifics");
}

int main(void)
{
	threads();
	sleeping();
	mutexes();
	conditions();
	specifics();
	return success();
}
