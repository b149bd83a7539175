/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_cputime.c - the CPU time of a thread is its own: neither what
 * others used on the same CPU, nor the time that it waited.
 */
#include "check.h"

#include <sys/resource.h>

enum { SPIN_MS = 30, THREADS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int stage;

static long long usage(int who)
{
	struct rusage u;

	CHECK_OK(getrusage(who, &u));
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void spin_cpu(long long ns)
{
	long long end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		sched_yield();
}

static void wait_stage(int wanted)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	while (stage < wanted)
		CHECK_OK(pthread_cond_wait(&cond, &lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void set_stage(int value)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	stage = value;
	CHECK_OK(pthread_cond_broadcast(&cond));
	CHECK_OK(pthread_mutex_unlock(&lock));
}

/* By its own clock it computes; by that of main, it does. */
static void *busy(void *arg)
{
	long long process = now(CLOCK_PROCESS_CPUTIME_ID);
	long long begin = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC), used;

	spin_cpu(SPIN_MS * MS);
	used = now(CLOCK_THREAD_CPUTIME_ID) - begin;
	CHECK(used >= SPIN_MS * MS);
	CHECK(used <= now(CLOCK_MONOTONIC) - wall + 5 * MS);
	CHECK(used <= now(CLOCK_PROCESS_CPUTIME_ID) - process);
	/* The tick of the kernel's own split is coarse, and differs by its configuration. */
	CHECK(usage(RUSAGE_THREAD) >= used - 12 * MS);
	wait_stage(1);
	return arg;
}

static void *lazy(void *arg)
{
	long long begin = now(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < 20; i++)
		usleep(1000);
	wait_stage(1);
	/* Far less than what the busy ones used meanwhile. */
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - begin < SPIN_MS * MS / 2);
	return arg;
}

static void *sleeper(void *arg)
{
	clockid_t clock = *(clockid_t *)arg;
	struct timespec ts = to_timespec(10 * MS);
	long long before = now(clock);

	CHECK_OK(clock_nanosleep(clock, 0, &ts, NULL));
	CHECK(now(clock) - before >= 10 * MS);
	ts = to_timespec(before);
	CHECK_OK(clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL));
	return NULL;
}

static void *steps(void *arg)
{
	clockid_t mine;
	long long last = 0;

	CHECK_OK(pthread_getcpuclockid(pthread_self(), &mine));
	for (int i = 0; i < 500; i++) {
		long long one = now(CLOCK_THREAD_CPUTIME_ID), two = now(mine);

		CHECK(one >= last);
		CHECK(two >= one);
		last = two;
		if (i % 8 == 0)
			sched_yield();
	}
	return arg;
}

int main(void)
{
	pthread_t busy_threads[THREADS], lazy_threads[THREADS], t;
	struct timespec ts;
	clockid_t clock;
	long long begin, used;
	int err;

	/* What main used before its first thread is its own. */
	spin_cpu(10 * MS);
	for (int i = 0; i < THREADS; i++) {
		busy_threads[i] = start(busy, NULL);
		lazy_threads[i] = start(lazy, NULL);
	}
	begin = now(CLOCK_THREAD_CPUTIME_ID);
	CHECK(begin >= 10 * MS);
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(pthread_getcpuclockid(busy_threads[i], &clock));
		CHECK_OK(clock_getres(clock, &ts));
		CHECK(ts.tv_sec == 0 && ts.tv_nsec <= 20000000);
		/* It may take seconds on a busy machine, and each look costs a little. */
		while (now(clock) < SPIN_MS * MS)
			usleep(10000);
	}
	used = now(CLOCK_THREAD_CPUTIME_ID) - begin;
	CHECK(used < SPIN_MS * MS);
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(pthread_getcpuclockid(lazy_threads[i], &clock));
		CHECK(now(clock) < SPIN_MS * MS / 2);
	}
	/* Together they are not more than the process. */
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) >= THREADS * SPIN_MS * MS);
	CHECK(usage(RUSAGE_SELF) >= usage(RUSAGE_THREAD));
	set_stage(1);
	for (int i = 0; i < THREADS; i++) {
		finish(busy_threads[i]);
		finish(lazy_threads[i]);
	}
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) >= begin);

	/* A new thread begins at nothing, whatever its predecessor used. */
	t = start(steps, NULL);
	err = pthread_getcpuclockid(t, &clock);
	/* It may have ended. */
	CHECK(err == 0 || err == ESRCH);
	finish(t);
	t = start(steps, NULL);
	finish(t);

	CHECK_OK(pthread_getcpuclockid(pthread_self(), &clock));
	CHECK_INT(clock_nanosleep(clock, 0, &(struct timespec){ 0, 1 }, NULL), EINVAL);
	CHECK_INT(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &(struct timespec){ 0, 1 }, NULL),
		  EINVAL);
	t = start(sleeper, &clock);
	/* It sleeps for as long as this one computes. */
	while (pthread_tryjoin_np(t, NULL) == EBUSY)
		spin_cpu(MS);
	CHECK_ERR(clock_gettime((clockid_t)-1, &ts), EINVAL);
	return success();
}
