/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/cond_timed.c - timed waits: every clock, never early, mutex held again. */
#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int flag;

static void times_out(pthread_cond_t *cond, clockid_t clock, int by_clockwait,
		      long long ns)
{
	long long t0 = now(clock);
	struct timespec ts = to_timespec(t0 + ns);
	int r;

	CHECK_OK(pthread_mutex_lock(&lock));
	do
		r = by_clockwait ?
		    pthread_cond_clockwait(cond, &lock, clock, &ts) :
		    pthread_cond_timedwait(cond, &lock, &ts);
	while (!r);
	CHECK_INT(r, ETIMEDOUT);
	CHECK(now(clock) >= t0 + ns);
	CHECK_INT(pthread_mutex_trylock(&lock), EBUSY);
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void *one_of_many(void *arg)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	times_out(&cond, CLOCK_REALTIME, 0, (intptr_t)arg * MS);
	times_out(&cond, CLOCK_MONOTONIC, 1, (40 - (intptr_t)arg) * MS);
	return NULL;
}

struct half {
	pthread_cond_t *cond;
	int seen;
};

static void *in_time(void *arg)
{
	struct half *half = arg;
	struct timespec ts = in(CLOCK_REALTIME, 30000 * MS);

	CHECK_OK(pthread_mutex_lock(&lock));
	while (!flag)
		CHECK_OK(pthread_cond_timedwait(half->cond, &lock, &ts));
	half->seen = 1;
	CHECK_OK(pthread_mutex_unlock(&lock));
	return NULL;
}

/* Signals and deadlines at about the same time: no signal is lost. */
static pthread_cond_t race_cond = PTHREAD_COND_INITIALIZER;
static int given, taken, closed;

static void *impatient(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg + 1;

	CHECK_OK(pthread_mutex_lock(&lock));
	while (!closed || given > taken) {
		struct timespec ts = in(CLOCK_REALTIME,
				(long long)(random_next(&seed) % 200000));

		if (given > taken) {
			taken++;
			continue;
		}
		pthread_cond_timedwait(&race_cond, &lock, &ts);
	}
	CHECK_OK(pthread_mutex_unlock(&lock));
	return NULL;
}

static void races(void)
{
	pthread_t t[8];

	for (intptr_t i = 0; i < 8; i++)
		t[i] = start(impatient, (void *)i);
	for (int i = 0; i < 1000; i++) {
		CHECK_OK(pthread_mutex_lock(&lock));
		given++;
		CHECK_OK(pthread_cond_signal(&race_cond));
		CHECK_OK(pthread_mutex_unlock(&lock));
		if (i % 10 == 0)
			usleep(50);
	}
	CHECK_OK(pthread_mutex_lock(&lock));
	closed = 1;
	CHECK_OK(pthread_cond_broadcast(&race_cond));
	CHECK_OK(pthread_mutex_unlock(&lock));
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	CHECK_INT(taken, 1000);
	puts("races");
}

int main(void)
{
	pthread_cond_t realtime = PTHREAD_COND_INITIALIZER, monotonic;
	struct half half[6];
	pthread_condattr_t attr;
	struct timespec ts;
	pthread_t t[40];
	clockid_t clock;

	CHECK_OK(pthread_condattr_init(&attr));
	CHECK_OK(pthread_condattr_getclock(&attr, &clock));
	CHECK_INT(clock, CLOCK_REALTIME);
	CHECK_INT(pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID),
		  EINVAL);
	CHECK_OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	CHECK_OK(pthread_cond_init(&monotonic, &attr));
	CHECK_OK(pthread_condattr_destroy(&attr));

	for (long long ns = -1000 * MS; ns <= 10 * MS; ns += 505 * MS) {
		times_out(&realtime, CLOCK_REALTIME, 0, ns);
		times_out(&realtime, CLOCK_REALTIME, 1, ns);
		times_out(&realtime, CLOCK_MONOTONIC, 1, ns);
		times_out(&monotonic, CLOCK_MONOTONIC, 0, ns);
		times_out(&monotonic, CLOCK_MONOTONIC, 1, ns);
		times_out(&monotonic, CLOCK_REALTIME, 1, ns);
	}
	puts("clocks");

	CHECK_OK(pthread_mutex_lock(&lock));
	ts = to_timespec(0);
	CHECK_INT(pthread_cond_timedwait(&realtime, &lock, &ts), ETIMEDOUT);
	CHECK_INT(pthread_cond_timedwait(&monotonic, &lock, &ts), ETIMEDOUT);
	ts.tv_nsec = 1000000000;
	CHECK_INT(pthread_cond_timedwait(&realtime, &lock, &ts), EINVAL);
	ts.tv_nsec = -1;
	CHECK_INT(pthread_cond_timedwait(&realtime, &lock, &ts), EINVAL);
	CHECK_INT(pthread_cond_clockwait(&realtime, &lock, CLOCK_MONOTONIC, &ts),
		  EINVAL);
	ts.tv_nsec = 0;
	CHECK_INT(pthread_cond_clockwait(&realtime, &lock,
					 CLOCK_THREAD_CPUTIME_ID, &ts), EINVAL);
	ts.tv_sec = -5;
	CHECK_INT(pthread_cond_timedwait(&realtime, &lock, &ts), ETIMEDOUT);
	/* After each of these the mutex is still held. */
	CHECK_INT(pthread_mutex_trylock(&lock), EBUSY);
	CHECK_OK(pthread_mutex_unlock(&lock));
	puts("arguments");

	for (intptr_t i = 0; i < 40; i++)
		t[i] = start(one_of_many, (void *)i);
	for (int i = 0; i < 40; i++)
		finish(t[i]);
	puts("many");

	for (int i = 0; i < 6; i++) {
		half[i] = (struct half){ &realtime, 0 };
		t[i] = start(in_time, &half[i]);
	}
	settle();
	CHECK_OK(pthread_mutex_lock(&lock));
	flag = 1;
	CHECK_OK(pthread_cond_broadcast(&realtime));
	CHECK_OK(pthread_mutex_unlock(&lock));
	for (int i = 0; i < 6; i++) {
		finish(t[i]);
		CHECK_INT(half[i].seen, 1);
	}
	puts("in time");
	races();
	return success();
}
