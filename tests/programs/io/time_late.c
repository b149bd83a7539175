/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/time_late.c - timed waits never end early, and on an idle machine at most 2
 * ms late. This machine may be busy, which makes most of them late, but never one earlier than
 * the library would have it, so the best of many attempts counts: a deadline that is rounded up
 * makes all of them late.  An attempt is two waits, one right after the other, both of which end in
 * time: if waits ended only when somebody happens to look, one of the two would be late
 * wherever that is more than 7 ms apart (2 late, 3 of waiting, 2 late).
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum { ATTEMPTS = 2000, WAIT = 3 };
#define LATE (2 * MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* held by main() */
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;	/* likewise */
static sem_t sem;
static pthread_t forever;
static int pipe_fds[2], epoll_fd;

/* Each waits until then, in vain. */
static void mutex_timed(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_mutex_timedlock(&lock, then), ETIMEDOUT);
}

static void mutex_by_clock(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_mutex_clocklock(&lock, clock, then), ETIMEDOUT);
}

static void cond_timed(clockid_t clock, const struct timespec *then)
{
	CHECK_OK(pthread_mutex_lock(&own));
	while (pthread_cond_timedwait(&cond, &own, then) != ETIMEDOUT)
		;
	CHECK_OK(pthread_mutex_unlock(&own));
}

static void cond_by_clock(clockid_t clock, const struct timespec *then)
{
	CHECK_OK(pthread_mutex_lock(&own));
	while (pthread_cond_clockwait(&cond, &own, clock, then) != ETIMEDOUT)
		;
	CHECK_OK(pthread_mutex_unlock(&own));
}

static void read_timed(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_rwlock_timedrdlock(&rwlock, then), ETIMEDOUT);
}

static void write_by_clock(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_rwlock_clockwrlock(&rwlock, clock, then), ETIMEDOUT);
}

static void sem_timed(clockid_t clock, const struct timespec *then)
{
	CHECK_ERR(sem_timedwait(&sem, then), ETIMEDOUT);
}

static void sem_by_clock(clockid_t clock, const struct timespec *then)
{
	CHECK_ERR(sem_clockwait(&sem, clock, then), ETIMEDOUT);
}

static void join_timed(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_timedjoin_np(forever, NULL, then), ETIMEDOUT);
}

static void join_by_clock(clockid_t clock, const struct timespec *then)
{
	CHECK_INT(pthread_clockjoin_np(forever, NULL, clock, then), ETIMEDOUT);
}

static void sleep_until(clockid_t clock, const struct timespec *then)
{
	CHECK_OK(clock_nanosleep(clock, TIMER_ABSTIME, then, NULL));
}

/* The others wait for a time, which began before this. */
static void sleep_for(clockid_t clock, const struct timespec *then)
{
	struct timespec time = to_timespec(WAIT * MS);

	CHECK_OK(nanosleep(&time, NULL));
}

static void usleep_for(clockid_t clock, const struct timespec *then)
{
	CHECK_OK(usleep(WAIT * 1000));
}

static void poll_for(clockid_t clock, const struct timespec *then)
{
	struct pollfd fd = { pipe_fds[0], POLLIN, 0 };

	CHECK_INT(poll(&fd, 1, WAIT), 0);
}

static void ppoll_for(clockid_t clock, const struct timespec *then)
{
	struct pollfd fd = { pipe_fds[0], POLLIN, 0 };
	struct timespec time = to_timespec(WAIT * MS);

	CHECK_INT(ppoll(&fd, 1, &time, NULL), 0);
}

static void select_for(clockid_t clock, const struct timespec *then)
{
	struct timeval time = { 0, WAIT * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	CHECK_INT(select(pipe_fds[0] + 1, &set, NULL, NULL, &time), 0);
}

static void epoll_for(clockid_t clock, const struct timespec *then)
{
	struct epoll_event event;

	CHECK_INT(epoll_wait(epoll_fd, &event, 1, WAIT), 0);
}

static const struct {
	const char *name;
	void (*wait)(clockid_t, const struct timespec *);
	clockid_t clock;
} ways[] = {
	{ "pthread_mutex_timedlock", mutex_timed, CLOCK_REALTIME },
	{ "pthread_mutex_clocklock", mutex_by_clock, CLOCK_MONOTONIC },
	{ "pthread_cond_timedwait", cond_timed, CLOCK_REALTIME },
	{ "pthread_cond_clockwait", cond_by_clock, CLOCK_MONOTONIC },
	{ "pthread_rwlock_timedrdlock", read_timed, CLOCK_REALTIME },
	{ "pthread_rwlock_clockwrlock", write_by_clock, CLOCK_MONOTONIC },
	{ "sem_timedwait", sem_timed, CLOCK_REALTIME },
	{ "sem_clockwait", sem_by_clock, CLOCK_MONOTONIC },
	{ "pthread_timedjoin_np", join_timed, CLOCK_REALTIME },
	{ "pthread_clockjoin_np", join_by_clock, CLOCK_MONOTONIC },
	{ "clock_nanosleep, until", sleep_until, CLOCK_MONOTONIC },
	{ "clock_nanosleep, until, real time", sleep_until, CLOCK_REALTIME },
	{ "nanosleep", sleep_for, CLOCK_MONOTONIC },
	{ "usleep", usleep_for, CLOCK_MONOTONIC },
	{ "poll", poll_for, CLOCK_MONOTONIC },
	{ "ppoll", ppoll_for, CLOCK_MONOTONIC },
	{ "select", select_for, CLOCK_MONOTONIC },
	{ "epoll_wait", epoll_for, CLOCK_MONOTONIC },
};

/* Returns how late it ends, and the thread goes on. */
static long long wait_once(size_t way)
{
	struct timespec then = in(ways[way].clock, WAIT * MS);
	long long late;

	ways[way].wait(ways[way].clock, &then);
	late = now(ways[way].clock) - (then.tv_sec * 1000 * MS + then.tv_nsec);
	if (late < 0)
		fail(__FILE__, __LINE__, "%s is %lld ns early\n", ways[way].name, -late);
	return late;
}

static void *tries(void *arg)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		long long best = -1;

		/* A few in any case: none of them early. */
		for (int n = 0; n < ATTEMPTS && (n < 3 || best > LATE); n++) {
			long long first = wait_once(i), second = wait_once(i);
			long long later = first > second ? first : second;

			if (best < 0 || later < best)
				best = later;
		}
		if (best > LATE)
			fail(__FILE__, __LINE__, "%s is %lld ns late at best\n", ways[i].name,
			     best);
		if (arg)
			puts(ways[i].name);
	}
	return NULL;
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_rwlock_wrlock(&rwlock));
	CHECK_OK(sem_init(&sem, 0, 0));
	CHECK_OK(pipe(pipe_fds));
	epoll_fd = epoll_create1(0);
	CHECK(epoll_fd >= 0);
	CHECK_OK(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_fds[0], &event));
	forever = start(waits, NULL);
	finish(start(tries, &lock));
	finish(start_affine(tries, NULL));
	return success();
}
