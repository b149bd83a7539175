/* SPDX-License-Identifier: MIT */
/* tests/programs/io/sleep_basic.c - every way to sleep: never early, none behind a longer one, errors, signals. */
#include "check.h"

#define SLEEPERS 50

static volatile sig_atomic_t handled;
static int stop;
static const struct timespec *volatile bad = (const struct timespec *)1;
static const struct timespec fixed = { 7, 7 };
static struct timespec *volatile read_only = (struct timespec *)&fixed;

static void relative(long long ns)
{
	struct timespec ts = to_timespec(ns), rem = { 7, 7 };
	long long t0;

	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(nanosleep(&ts, &rem), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + ns);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + ns);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(clock_nanosleep(CLOCK_REALTIME, 0, &ts, &rem), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + ns);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(usleep((useconds_t)(ns / 1000)), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + ns / 1000 * 1000);
	/* Untouched unless interrupted. */
	CHECK_INT(rem.tv_sec, 7);
	CHECK_INT(rem.tv_nsec, 7);
}

static void absolute(clockid_t clock, long long ns)
{
	struct timespec ts = in(clock, ns);

	CHECK_KEEPS(clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL), 0);
	CHECK(now(clock) >= ts.tv_sec * 1000000000LL + ts.tv_nsec);
}

static void errors(void)
{
	struct timespec ts = { 0, 1000000000 };

	CHECK_ERR(nanosleep(&ts, NULL), EINVAL);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), EINVAL);
	CHECK_INT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, NULL), EINVAL);
	ts.tv_nsec = -1;
	CHECK_ERR(nanosleep(&ts, NULL), EINVAL);
	ts.tv_nsec = 0;
	ts.tv_sec = -1;
	CHECK_ERR(nanosleep(&ts, NULL), EINVAL);
	ts.tv_sec = 0;
	CHECK_INT(clock_nanosleep(77, 0, &ts, NULL), EINVAL);
	CHECK_INT(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL), EINVAL);
	CHECK_ERR(nanosleep(bad, NULL), EFAULT);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, bad, NULL), EFAULT);
	CHECK_KEEPS(sleep(0), 0);
	CHECK_KEEPS(usleep(0), 0);
}

static void *each(void *arg)
{
	relative(0);
	relative(1);
	relative(10 * MS);
	absolute(CLOCK_MONOTONIC, 10 * MS);
	absolute(CLOCK_REALTIME, 10 * MS);
	absolute(CLOCK_BOOTTIME, 5 * MS);
	absolute(CLOCK_MONOTONIC, 0);
	absolute(CLOCK_MONOTONIC, -MS);
	absolute(CLOCK_REALTIME, -1000000 * MS);
	errors();
	return arg;
}

static struct timespec base;
static _Atomic int woken[2];

/* Those with an odd number sleep for an hour longer. */
static void *sleeper(void *arg)
{
	const int id = (int)(intptr_t)arg;
	struct timespec ts = to_timespec(base.tv_sec * 1000000000LL + base.tv_nsec + id * 3 * MS +
					 id % 2 * 3600000 * MS);

	CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
	CHECK(now(CLOCK_MONOTONIC) >= ts.tv_sec * 1000000000LL + ts.tv_nsec);
	woken[id % 2]++;
	return NULL;
}

/*
 * Who is to wake up soon waits behind nobody who is to wake up in an hour, in whatever order they come and go.  How late
 * they are on a busy machine, and hence in which order neighbours run, nobody can say.
 */
static void in_order(void)
{
	pthread_t t[2 * SLEEPERS];

	base = in(CLOCK_MONOTONIC, 30 * MS);
	/* All numbers, mixed: 37 and 2 * SLEEPERS have no divisor in common. */
	for (int i = 0, id = 0; i < 2 * SLEEPERS; i++, id = (id + 37) % (2 * SLEEPERS))
		t[id] = start(sleeper, (void *)(intptr_t)id);
	/* Some of the long ones go before the short ones have woken up. */
	for (int id = 1; id < SLEEPERS; id += 4) {
		CHECK_OK(pthread_cancel(t[id]));
		CHECK(finish(t[id]) == PTHREAD_CANCELED);
	}
	for (int id = 0; id < 2 * SLEEPERS; id += 2)
		CHECK(!finish(t[id]));
	CHECK_INT(woken[0], SLEEPERS);
	for (int id = 1; id < 2 * SLEEPERS; id += 2) {
		if (id < SLEEPERS && id % 4 == 1)
			continue;
		CHECK_OK(pthread_cancel(t[id]));
		CHECK(finish(t[id]) == PTHREAD_CANCELED);
	}
	CHECK_INT(woken[1], 0);
	puts("in order");
}

static void *second(void *arg)
{
	long long t0 = now(CLOCK_MONOTONIC);

	CHECK_KEEPS(sleep(1), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 1000 * MS);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *pester(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		CHECK_OK(pthread_kill(*(pthread_t *)arg, SIGUSR1));
		usleep(2000);
	}
	return NULL;
}

/* A handler ends the sleep, with SA_RESTART as well; the rest is told. */
static void interrupted(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
	struct timespec ts = { 3600, 0 }, rem = { 0, 0 };
	pthread_t self = pthread_self(), t;

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	mask_signal(SIG_BLOCK, SIGUSR1);
	stop = 0;
	t = start(pester, &self);
	mask_signal(SIG_UNBLOCK, SIGUSR1);
	CHECK_ERR(nanosleep(&ts, &rem), EINTR);
	CHECK(rem.tv_sec > 3000 && rem.tv_sec <= 3600);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &rem), EINTR);
	CHECK(rem.tv_sec > 3000 && rem.tv_sec <= 3600);
	CHECK_ERR(nanosleep(&ts, read_only), EFAULT);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, read_only), EFAULT);
	CHECK_INT(clock_nanosleep(CLOCK_BOOTTIME, 0, &ts, read_only), EFAULT);
	ts = in(CLOCK_REALTIME, 3600000 * MS);
	rem.tv_sec = 7;
	CHECK_INT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, &rem), EINTR);
	CHECK_INT(rem.tv_sec, 7);
	errno = 0;
	CHECK(sleep(3600) > 3000);
	CHECK_INT(errno, EINTR);
	CHECK_ERR(usleep(999999999), EINTR);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	finish(t);
	CHECK(handled > 0);
}

int main(void)
{
	pthread_t t[20], s;

	each(NULL);
	s = start(second, NULL);
	for (int i = 0; i < 20; i++)
		t[i] = start(each, NULL);
	for (int i = 0; i < 20; i++)
		finish(t[i]);
	puts("each");
	in_order();
	interrupted(0);
	interrupted(SA_RESTART);
	puts("interrupted");
	finish(s);
	return success();
}
