/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_waits.c - a thread is cancelled while it waits in one of the less usual
 * cancellation points, or the usual with unusual arguments (waits.h).
 */
#include "waits.h"

static int cleaned;

static void cleanup(void *arg)
{
	cleaned++;
	(void)arg;
}

static void *waits_in(void *arg)
{
	const struct point *p = arg;

	pthread_cleanup_push(cleanup, NULL);
	event_post(&waiting);
	p->call();
	printf("%s has not waited: %d\n", p->name, errno);
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel_in(const struct point *p)
{
	pthread_t t;

	cleaned = waiting.count = 0;
	t = start(waits_in, (void *)p);
	event_wait(&waiting, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	set_up_waits();
	for (size_t i = 0; i < COUNT(points); i++) {
		cancel_in(&points[i]);
		printf("%s\n", points[i].name);
	}
	tear_down_waits();
	return success();
}
