/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_cancel.c - deferred cancellation at calls that block. */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>

static struct event ready = EVENT_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int pipe_fd[2], sock[2], listener;
static int cleaned, holds_lock;

static void cleanup(void *arg)
{
	(void)arg;
	cleaned++;
}

static void cleanup_unlock(void *arg)
{
	/* Cancelled in a wait, the thread owns the mutex again. */
	CHECK_INT(pthread_mutex_trylock(arg), EBUSY);
	holds_lock++;
	CHECK_OK(pthread_mutex_unlock(arg));
	cleaned++;
}

static void *forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void block(const char *where)
{
	struct timespec far = in(CLOCK_REALTIME, 3600000 * MS);
	struct pollfd p = { pipe_fd[0], POLLIN, 0 };
	char c;

	if (!strcmp(where, "read"))
		CHECK_INT(read(pipe_fd[0], &c, 1), 1);
	else if (!strcmp(where, "recv"))
		CHECK_INT(recv(sock[0], &c, 1, 0), 1);
	else if (!strcmp(where, "accept"))
		CHECK(accept(listener, NULL, NULL) >= 0);
	else if (!strcmp(where, "poll"))
		poll(&p, 1, -1);
	else if (!strcmp(where, "sleep"))
		sleep(3600);
	else if (!strcmp(where, "usleep"))
		usleep(900000000);
	else if (!strcmp(where, "nanosleep"))
		nanosleep(&far, NULL);
	else if (!strcmp(where, "clock_nanosleep"))
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &far, NULL);
	else if (!strcmp(where, "sem_wait"))
		sem_wait(&sem);
	else if (!strcmp(where, "sem_timedwait"))
		sem_timedwait(&sem, &far);
	else if (!strcmp(where, "testcancel"))
		for (;;) {
			pthread_testcancel();
			sched_yield();
		}
	CHECK(0);
}

static void *cancelled_in(void *arg)
{
	pthread_cleanup_push(cleanup, NULL);
	event_post(&ready);
	block(arg);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *cancelled_in_cond(void *arg)
{
	struct timespec far = in(CLOCK_REALTIME, 3600000 * MS);

	CHECK_OK(pthread_mutex_lock(&lock));
	pthread_cleanup_push(cleanup_unlock, &lock);
	event_post(&ready);
	for (;;) {
		if (arg)
			pthread_cond_timedwait(&cond, &lock, &far);
		else
			pthread_cond_wait(&cond, &lock);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void *cancelled_in_join(void *arg)
{
	pthread_cleanup_push(cleanup, NULL);
	event_post(&ready);
	CHECK_OK(pthread_join(*(pthread_t *)arg, NULL));
	pthread_cleanup_pop(0);
	return NULL;
}

static void each(void)
{
	static char *where[] = {
		"read", "recv", "accept", "poll", "sleep", "usleep",
		"nanosleep", "clock_nanosleep", "sem_wait", "sem_timedwait",
		"testcancel",
	};
	pthread_t t, inner;

	for (size_t i = 0; i < COUNT(where); i++) {
		for (int early = 0; early < 2; early++) {
			cleaned = ready.count = 0;
			t = start(cancelled_in, where[i]);
			event_wait(&ready, 1);
			if (!early)
				settle();
			CHECK_OK(pthread_cancel(t));
			CHECK(finish(t) == PTHREAD_CANCELED);
			CHECK_INT(cleaned, 1);
		}
		printf("cancelled in %s\n", where[i]);
	}
	for (intptr_t timed = 0; timed < 2; timed++) {
		cleaned = holds_lock = ready.count = 0;
		t = start(cancelled_in_cond, (void *)timed);
		event_wait(&ready, 1);
		settle();
		CHECK_OK(pthread_cancel(t));
		CHECK(finish(t) == PTHREAD_CANCELED);
		CHECK_INT(cleaned, 1);
		CHECK_OK(pthread_mutex_lock(&lock));
		CHECK_OK(pthread_mutex_unlock(&lock));
	}
	puts("cancelled in cond_wait");

	/* A cancelled join leaves its target joinable. */
	cleaned = ready.count = 0;
	inner = start(forever, NULL);
	t = start(cancelled_in_join, &inner);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
	CHECK_OK(pthread_cancel(inner));
	CHECK(finish(inner) == PTHREAD_CANCELED);
	puts("cancelled in join");
}

static void *disabled(void *arg)
{
	char c;
	int old;

	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
	CHECK_INT(old, PTHREAD_CANCEL_ENABLE);
	CHECK_INT(pthread_setcancelstate(77, NULL), EINVAL);
	CHECK_INT(pthread_setcanceltype(77, NULL), EINVAL);
	CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old));
	CHECK_INT(old, PTHREAD_CANCEL_DEFERRED);
	event_post(&ready);
	/* The cancel comes first, then the bytes. */
	CHECK_INT(read(pipe_fd[0], &c, 1), 1);
	pthread_testcancel();
	usleep(1000);
	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
	CHECK_INT(old, PTHREAD_CANCEL_DISABLE);
	if (!arg)
		return "not at a cancellation point";
	usleep(1000);
	CHECK(0);
	return NULL;
}

static void *cancels_itself(void *arg)
{
	CHECK_OK(pthread_cancel(pthread_self()));
	cleaned = 1;
	/* Mutexes are no cancellation points. */
	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	cleaned = 2;
	pthread_testcancel();
	cleaned = 3;
	return arg;
}

static void *quick(void *arg)
{
	return arg;
}

static void states(void)
{
	char *value;
	pthread_t t;

	for (intptr_t i = 0; i < 2; i++) {
		ready.count = 0;
		t = start(disabled, (void *)i);
		event_wait(&ready, 1);
		CHECK_OK(pthread_cancel(t));
		CHECK_OK(pthread_cancel(t));
		CHECK_INT(write(pipe_fd[1], "x", 1), 1);
		value = finish(t);
		if (i)
			CHECK(value == PTHREAD_CANCELED);
		else
			puts(value);
	}
	CHECK(finish(start(cancels_itself, NULL)) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 2);
	/* A new thread starts with a clean slate. */
	for (int i = 0; i < 50; i++)
		CHECK(finish(start(quick, &t)) == &t);
	t = start(quick, &t);
	settle();
	CHECK_OK(pthread_cancel(t));
	value = finish(t);
	CHECK(value == (char *)&t || value == PTHREAD_CANCELED);
	puts("states");
}

int main(void)
{
	CHECK_OK(pipe(pipe_fd));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK_OK(sem_init(&sem, 0, 0));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(listener >= 0);
	CHECK_OK(listen(listener, 5));
	each();
	states();
	return success();
}
