/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/once_basic.c - pthread_once runs its routine once for all callers, even
 * if the thread that runs it sleeps, ends, is cancelled, or does not exist after a fork.
 */
#include "check.h"

#include <sys/wait.h>

#define THREADS 20

static pthread_once_t once;
static int runs, plain, others_wait;
static struct event ready = EVENT_INIT;

static void slowly(void)
{
	runs++;
	usleep(3000);
	plain = 42;
}

static void *comes(void *arg)
{
	CHECK_KEEPS(pthread_once(&once, slowly), 0);
	CHECK_INT(plain, 42);
	return arg;
}

static void crowd(int affine)
{
	pthread_t t[THREADS];

	once = PTHREAD_ONCE_INIT;
	runs = plain = 0;
	for (int i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, comes, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(runs, 1);
	puts("crowd");
}

/* The first two do not come to the end of it. */
static void not_at_first(void)
{
	event_post(&ready);
	switch (++runs) {
	case 1:
		event_wait(&ready, THREADS + 1);
		settle();
		pthread_exit(NULL);
	case 2:
		for (;;)
			pause();
	default:
		plain = 42;
	}
}

static void *comes_too(void *arg)
{
	event_post(&ready);
	CHECK_OK(pthread_once(&once, not_at_first));
	CHECK_INT(plain, 42);
	__atomic_fetch_add(&others_wait, -1, __ATOMIC_SEQ_CST);
	return arg;
}

static void abandoned(int affine)
{
	pthread_t t[THREADS];

	once = PTHREAD_ONCE_INIT;
	runs = plain = ready.count = 0;
	others_wait = THREADS;
	for (int i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, comes_too, NULL);
	/* One has left by pthread_exit, a second is at it. */
	event_wait(&ready, THREADS + 2);
	settle();
	CHECK_INT(others_wait, THREADS);
	/* Only that one is at a cancellation point. */
	for (int i = 0; i < THREADS; i++)
		pthread_cancel(t[i]);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(runs, 3);
	CHECK_INT(others_wait, 2);
	puts("abandoned");
}

/* In the child nobody is at it any more. */
static void forks(void)
{
	if (++runs == 1) {
		event_post(&ready);
		event_wait(&ready, 100);
	}
	plain = runs;
}

static void *first(void *arg)
{
	CHECK_OK(pthread_once(&once, forks));
	return arg;
}

static void across_fork(void)
{
	pthread_t t;
	int status;
	pid_t pid;

	once = PTHREAD_ONCE_INIT;
	runs = plain = ready.count = 0;
	t = start(first, NULL);
	event_wait(&ready, 1);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_OK(pthread_once(&once, forks));
		CHECK_INT(plain, 2);
		CHECK_OK(pthread_once(&once, forks));
		CHECK_INT(runs, 2);
		/* And a grandchild finds it done. */
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			CHECK_OK(pthread_once(&once, forks));
			CHECK_INT(runs, 2);
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		_exit(status != 0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	for (int i = 0; i < 100; i++)
		event_post(&ready);
	finish(t);
	CHECK_INT(runs, 1);
	puts("across fork");
}

static pthread_once_t inner = PTHREAD_ONCE_INIT;

static void innermost(void)
{
	runs += 10;
}

static void nests(void)
{
	CHECK_OK(pthread_once(&inner, innermost));
	runs++;
}

static void nested(void)
{
	once = PTHREAD_ONCE_INIT;
	runs = 0;
	for (int i = 0; i < 3; i++)
		CHECK_OK(pthread_once(&once, nests));
	CHECK_INT(runs, 11);
	puts("nested");
}

int main(void)
{
	nested();
	for (int affine = 0; affine < 2; affine++) {
		crowd(affine);
		abandoned(affine);
	}
	fflush(stdout);
	across_fork();
	return success();
}
