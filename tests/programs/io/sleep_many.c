/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/sleep_many.c - N threads in sleeps and timed waits at once.
 *
 *	sleep_many [N [times]]
 *
 * Each of seven kinds in turn: relative and absolute sleeps, poll, and the timed waits for
 * a condition variable, a semaphore and a mutex; and a period.  None wakes early, all
 * wake, and what is due at fixed times does not drift.  Some are woken
 * by what they wait for, long before an hour has passed.  With "times" the elapsed time,
 * the CPU time and how late they woke go to stderr.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { SLEEP, SLEEP_UNTIL, POLL, COND, SEM, MUTEX, PERIOD, KINDS, HOUR = 3600 };
enum { PAIRS = 200, PERIODS = 5, PERIOD_MS = 40 };

struct sleeper {
	pthread_t thread;
	int kind;
	int woken;		/* by what it waits for, not by its deadline */
	long long length, late;	/* nanoseconds */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	sem_t sem;
	int posted;
	int fd;			/* silent */
};

static struct event arrived = EVENT_INIT, go = EVENT_INIT;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int silent[PAIRS][2];

/* Returns the moment, on the monotonic clock, before which it must not return. */
static long long timed_wait(struct sleeper *s)
{
	long long t0 = now(CLOCK_MONOTONIC);
	long long length = s->woken ? HOUR * 1000 * MS : s->length;
	struct timespec ts = to_timespec(length), at = in(CLOCK_MONOTONIC, length);
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	int r = 0;

	switch (s->kind) {
	case SLEEP:
		CHECK_OK(nanosleep(&ts, NULL));
		break;
	case SLEEP_UNTIL:
		CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));
		break;
	case POLL:
		CHECK_OK(poll(&p, 1, (int)(length / MS)));
		return t0 + length / MS * MS;
	case COND:
		CHECK_OK(pthread_mutex_lock(&s->lock));
		while (!s->posted && !r)
			r = pthread_cond_clockwait(&s->cond, &s->lock, CLOCK_MONOTONIC, &at);
		CHECK_OK(pthread_mutex_unlock(&s->lock));
		CHECK_INT(r, s->woken ? 0 : ETIMEDOUT);
		break;
	case SEM:
		if (s->woken)
			CHECK_OK(sem_clockwait(&s->sem, CLOCK_MONOTONIC, &at));
		else
			CHECK_ERR(sem_clockwait(&s->sem, CLOCK_MONOTONIC, &at), ETIMEDOUT);
		break;
	case MUTEX:
		CHECK_INT(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &at), ETIMEDOUT);
		break;
	case PERIOD:
		for (int i = 1; i <= PERIODS; i++) {
			at = to_timespec(t0 + i * PERIOD_MS * MS);
			CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));
			CHECK(now(CLOCK_MONOTONIC) >= t0 + i * PERIOD_MS * MS);
		}
		return t0 + PERIODS * PERIOD_MS * MS;
	}
	return t0 + length;
}

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	long long due, woke;

	event_post(&arrived);
	event_wait(&go, 1);
	due = timed_wait(s);
	woke = now(CLOCK_MONOTONIC);
	if (!s->woken) {
		CHECK(woke >= due);
		s->late = woke - due;
	}
	return NULL;
}

static void wake(struct sleeper *s)
{
	if (s->kind == SEM) {
		CHECK_OK(sem_post(&s->sem));
		return;
	}
	CHECK_OK(pthread_mutex_lock(&s->lock));
	s->posted = 1;
	CHECK_OK(pthread_cond_signal(&s->cond));
	CHECK_OK(pthread_mutex_unlock(&s->lock));
}

static int by_value(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

static void print_times(struct sleeper *s, int n, long long t0)
{
	long long *late = calloc((size_t)n, sizeof(*late));
	struct rusage u;

	CHECK(late != NULL);
	for (int i = 0; i < n; i++)
		late[i] = s[i].late;
	qsort(late, (size_t)n, sizeof(*late), by_value);
	CHECK_OK(getrusage(RUSAGE_SELF, &u));
	fprintf(stderr, "%d threads: %.2f s, user %.2f s, system %.2f s; late by %.2f ms"
		" (median), %.2f (99 %%), %.2f (most)\n", n,
		(double)(now(CLOCK_MONOTONIC) - t0) / 1e9,
		(double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
		(double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6,
		(double)late[n / 2] / 1e6, (double)late[n - 1 - n / 100] / 1e6,
		(double)late[n - 1] / 1e6);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2000;
	long long t0 = now(CLOCK_MONOTONIC);
	uint64_t seed = 1;
	struct sleeper *all;
	pthread_attr_t attr;

	CHECK(n > 0);
	all = calloc((size_t)n, sizeof(*all));
	CHECK(all != NULL);
	for (int i = 0; i < PAIRS; i++)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, silent[i]));
	CHECK_OK(pthread_mutex_lock(&held));
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, 64 * 1024));
	for (int i = 0; i < n; i++) {
		struct sleeper *s = &all[i];

		s->kind = i % KINDS;
		s->woken = i % 10 == 3 && (s->kind == COND || s->kind == SEM);
		s->fd = silent[i / KINDS % PAIRS][0];
		s->length = 200 * MS + (long long)(random_next(&seed) % (1000 * MS));
		CHECK_OK(pthread_mutex_init(&s->lock, NULL));
		CHECK_OK(pthread_cond_init(&s->cond, NULL));
		CHECK_OK(sem_init(&s->sem, 0, 0));
		CHECK_OK(pthread_create(&s->thread, &attr, sleeps, s));
	}
	event_wait(&arrived, n);
	event_post(&go);
	for (int i = 0; i < n; i++)
		if (all[i].woken)
			wake(&all[i]);
	for (int i = 0; i < n; i++)
		finish(all[i].thread);
	if (argc > 2)
		print_times(all, n, t0);
	printf("%d slept\n", n);
	return success();
}
