/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/mutex_types.c - every type of mutex, every way to lock it, every error. */
#include "check.h"

static struct event ready = EVENT_INIT;

static const struct {
	int type;
	const char *name;
} types[] = {
	{ PTHREAD_MUTEX_NORMAL, "normal" },
	{ PTHREAD_MUTEX_RECURSIVE, "recursive" },
	{ PTHREAD_MUTEX_ERRORCHECK, "errorcheck" },
	{ PTHREAD_MUTEX_ADAPTIVE_NP, "adaptive" },
};

static void *try_busy(void *arg)
{
	CHECK_INT(pthread_mutex_trylock(arg), EBUSY);
	return NULL;
}

static void *try_free(void *arg)
{
	CHECK_OK(pthread_mutex_trylock(arg));
	CHECK_OK(pthread_mutex_unlock(arg));
	return NULL;
}

static void *unlock_not_owner(void *arg)
{
	CHECK_INT(pthread_mutex_unlock(arg), EPERM);
	return NULL;
}

/* The mutex is held by somebody else for as long as this runs. */
static void *timeouts(void *arg)
{
	struct timespec ts;
	long long t0;

	ts = in(CLOCK_REALTIME, -1000 * MS);
	CHECK_INT(pthread_mutex_timedlock(arg, &ts), ETIMEDOUT);
	ts = to_timespec(0);
	CHECK_INT(pthread_mutex_timedlock(arg, &ts), ETIMEDOUT);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 10 * MS);
	CHECK_INT(pthread_mutex_timedlock(arg, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= t0 + 10 * MS);
	t0 = now(CLOCK_MONOTONIC);
	ts = to_timespec(t0 + 10 * MS);
	CHECK_INT(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 10 * MS);
	ts.tv_nsec = -1;
	CHECK_INT(pthread_mutex_timedlock(arg, &ts), EINVAL);
	ts.tv_nsec = 1000000000;
	CHECK_INT(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &ts), EINVAL);
	ts.tv_nsec = 0;
	CHECK_INT(pthread_mutex_clocklock(arg, CLOCK_THREAD_CPUTIME_ID, &ts),
		  EINVAL);
	return NULL;
}

static void *take_in_time(void *arg)
{
	struct timespec ts = in(CLOCK_REALTIME, 20000 * MS);

	event_post(&ready);
	CHECK_OK(pthread_mutex_timedlock(arg, &ts));
	CHECK_OK(pthread_mutex_unlock(arg));
	ts = in(CLOCK_MONOTONIC, 20000 * MS);
	CHECK_OK(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &ts));
	CHECK_OK(pthread_mutex_unlock(arg));
	/* A free mutex is taken whatever the deadline. */
	ts = to_timespec(0);
	CHECK_OK(pthread_mutex_timedlock(arg, &ts));
	CHECK_OK(pthread_mutex_unlock(arg));
	return NULL;
}

static void *take(void *arg)
{
	event_post(&ready);
	CHECK_OK(pthread_mutex_lock(arg));
	CHECK_OK(pthread_mutex_unlock(arg));
	return NULL;
}

static void exercise(pthread_mutex_t *m, int type)
{
	struct timespec past = to_timespec(0);
	pthread_t t[6];

	CHECK_OK(pthread_mutex_lock(m));
	finish(start(try_busy, m));
	finish(start(timeouts, m));
	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		finish(start(unlock_not_owner, m));

	if (type == PTHREAD_MUTEX_RECURSIVE) {
		CHECK_OK(pthread_mutex_lock(m));
		CHECK_OK(pthread_mutex_trylock(m));
		CHECK_OK(pthread_mutex_timedlock(m, &past));
		CHECK_OK(pthread_mutex_unlock(m));
		CHECK_OK(pthread_mutex_unlock(m));
		CHECK_OK(pthread_mutex_unlock(m));
		finish(start(try_busy, m));
	} else {
		CHECK_INT(pthread_mutex_trylock(m), EBUSY);
	}
	if (type == PTHREAD_MUTEX_ERRORCHECK) {
		CHECK_INT(pthread_mutex_lock(m), EDEADLK);
		CHECK_INT(pthread_mutex_timedlock(m, &past), EDEADLK);
	}
	if (type == PTHREAD_MUTEX_NORMAL)
		CHECK_INT(pthread_mutex_timedlock(m, &past), ETIMEDOUT);

	CHECK_INT(pthread_mutex_destroy(m), EBUSY);
	CHECK_OK(pthread_mutex_unlock(m));
	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		CHECK_INT(pthread_mutex_unlock(m), EPERM);
	finish(start(try_free, m));

	/* Contended: those who wait get it when it is given up. */
	ready.count = 0;
	CHECK_OK(pthread_mutex_lock(m));
	for (int i = 0; i < 6; i++)
		t[i] = start(i % 2 ? take : take_in_time, m);
	event_wait(&ready, 6);
	settle();
	CHECK_OK(pthread_mutex_unlock(m));
	for (int i = 0; i < 6; i++)
		finish(t[i]);
}

static void attributes(void)
{
	pthread_mutexattr_t attr;
	int v;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_gettype(&attr, &v));
	CHECK_INT(v, PTHREAD_MUTEX_DEFAULT);
	CHECK_INT(pthread_mutexattr_settype(&attr, 77), EINVAL);
	CHECK_INT(pthread_mutexattr_settype(&attr, -1), EINVAL);
	CHECK_OK(pthread_mutexattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_PRIVATE);
	CHECK_INT(pthread_mutexattr_setpshared(&attr, 9), EINVAL);
	CHECK_OK(pthread_mutexattr_getprotocol(&attr, &v));
	CHECK_INT(v, PTHREAD_PRIO_NONE);
	CHECK_INT(pthread_mutexattr_setprotocol(&attr, 9), EINVAL);
	CHECK_OK(pthread_mutexattr_getrobust(&attr, &v));
	CHECK_INT(v, PTHREAD_MUTEX_STALLED);
	CHECK_INT(pthread_mutexattr_setrobust(&attr, 9), EINVAL);
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	puts("attributes");
}

int main(void)
{
	static pthread_mutex_t statics[] = {
		PTHREAD_MUTEX_INITIALIZER,
		PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
	};

	attributes();
	for (size_t i = 0; i < COUNT(types); i++) {
		pthread_mutexattr_t attr;
		pthread_mutex_t m;

		CHECK_OK(pthread_mutexattr_init(&attr));
		CHECK_OK(pthread_mutexattr_settype(&attr, types[i].type));
		CHECK_OK(pthread_mutex_init(&m, &attr));
		CHECK_OK(pthread_mutexattr_destroy(&attr));
		exercise(&m, types[i].type);
		CHECK_OK(pthread_mutex_destroy(&m));
		/* The same memory again, with the defaults. */
		CHECK_OK(pthread_mutex_init(&m, NULL));
		exercise(&m, PTHREAD_MUTEX_NORMAL);
		CHECK_OK(pthread_mutex_destroy(&m));
		exercise(&statics[i], types[i].type);
		CHECK_OK(pthread_mutex_destroy(&statics[i]));
		puts(types[i].name);
	}
	return success();
}
