/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/cancel_native.c - cancellation of threads that wait where only
 * libc or the kernel can wait, and of one that never waits.
 */
#include "check.h"

#include <sys/select.h>

static struct event ready = EVENT_INIT;
static int silent[2];

static void cleanup(void *arg)
{
	++*(int *)arg;
}

static void *in_select(void *arg)
{
	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	for (;;)
		select(0, NULL, NULL, NULL, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_fgets(void *arg)
{
	FILE *file = fdopen(dup(silent[0]), "r");
	char line[16];

	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	while (fgets(line, sizeof(line), file))
		continue;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_a_loop(void *arg)
{
	volatile unsigned long spins = 0;

	CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	pthread_cleanup_push(cleanup, arg);
	event_post(&ready);
	for (;;)
		spins++;
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(const char *name, void *(*fn)(void *))
{
	int cleaned = 0;
	pthread_t t;

	ready.count = 0;
	t = start(fn, &cleaned);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
	puts(name);
}

int main(void)
{
	CHECK_OK(pipe(silent));
	for (int i = 0; i < 20; i++) {
		cancel("select", in_select);
		cancel("fgets", in_fgets);
		cancel("loop", in_a_loop);
	}
	return success();
}
