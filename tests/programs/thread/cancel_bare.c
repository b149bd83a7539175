/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_bare.c - cancellation and pthread_exit in code that cannot be
 * unwound, because it is built without unwind tables: cleanup handlers run, innermost first,
 * and libc undoes its own unfinished work in its place among them.
 */
#include "check.h"

#include <threads.h>

static struct event ready = EVENT_INIT;
static pthread_once_t once;
static int runs;
static char order[16];

static void note(void *what)
{
	strcat(order, what);
}

/* Left once by each way. */
static void leaves(void)
{
	pthread_cleanup_push(note, "1");
	switch (++runs) {
	case 1:
		event_post(&ready);
		for (;;)
			pause();
	case 2:
		pthread_exit(NULL);
	}
	pthread_cleanup_pop(0);
}

/* By then others may try. */
static void is_free(void *what)
{
	note(what);
	CHECK_INT(once, PTHREAD_ONCE_INIT);
}

static void *comes(void *arg)
{
	pthread_cleanup_push(is_free, "2");
	CHECK_OK(pthread_once(&once, leaves));
	pthread_cleanup_pop(0);
	return arg;
}

static void left_once(int affine)
{
	pthread_t t;

	once = PTHREAD_ONCE_INIT;
	runs = ready.count = 0;
	order[0] = 0;
	t = start_as(affine, comes, NULL);
	event_wait(&ready, 1);
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK(!strcmp(order, "12"));
	CHECK(finish(start_as(affine, comes, NULL)) == NULL);
	CHECK(!strcmp(order, "1212"));
	CHECK(finish(start_as(affine, comes, &ready)) == &ready);
	CHECK_OK(pthread_once(&once, leaves));
	CHECK_INT(runs, 3);
	puts("left once");
}

static once_flag flag = ONCE_FLAG_INIT;

static void waits(void)
{
	if (++runs == 1) {
		event_post(&ready);
		for (;;)
			pause();
	}
}

static void *calls(void *arg)
{
	call_once(&flag, waits);
	return arg;
}

static void call_left(void)
{
	pthread_t t[3];

	runs = ready.count = 0;
	for (int i = 0; i < 3; i++)
		t[i] = start(calls, t + i);
	event_wait(&ready, 1);
	settle();
	for (int i = 0; i < 3; i++)
		pthread_cancel(t[i]);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	CHECK_INT(runs, 2);
	puts("call left");
}

/* The mutex is held again in the handler. */
static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void unlocks(void *arg)
{
	CHECK_OK(pthread_mutex_unlock(arg));
	note("u");
}

static void *waits_forever(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	event_post(&ready);
	pthread_cleanup_push(unlocks, &lock);
	for (;;)
		CHECK_OK(pthread_cond_wait(&never, &lock));
	pthread_cleanup_pop(0);
	return arg;
}

static void wait_left(int affine)
{
	pthread_t t;

	ready.count = 0;
	order[0] = 0;
	t = start_as(affine, waits_forever, NULL);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK(!strcmp(order, "u"));
	puts("wait left");
}

int main(void)
{
	for (int affine = 0; affine < 2; affine++) {
		left_once(affine);
		wait_left(affine);
	}
	call_left();
	return success();
}
