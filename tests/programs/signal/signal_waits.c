/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_waits.c - a handler runs in a thread that waits in one of the
 * less usual ways (waits.h), with SA_RESTART and without: does the call continue? A call that
 * continues is cancelled in the end.
 */
#include "waits.h"

#include <stdbool.h>

static _Atomic int handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

struct attempt {
	const struct point *point;
	_Atomic bool returned;
	long ret;
	int err;
};

static void *waits_in(void *arg)
{
	struct attempt *a = arg;

	event_post(&waiting);
	errno = 0;
	a->ret = a->point->call();
	a->err = errno;
	a->returned = true;
	return NULL;
}

static void interrupt_in(const struct point *p, int flags)
{
	bool ends = p->interrupted == ENDS || (p->interrupted == RESTARTS && !flags);
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };
	struct attempt a = { .point = p };
	pthread_t t;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	waiting.count = 0;
	handled = 0;
	t = start(waits_in, &a);
	event_wait(&waiting, 1);
	settle();
	if (a.returned)
		fail(__FILE__, __LINE__, "%s has not waited: %ld, error %d\n", p->name, a.ret, a.err);
	/* More than one, in case it has only now begun to wait. */
	do {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		settle();
	} while (!handled || (ends && !a.returned));
	printf("%s, %s: ", p->name, flags ? "SA_RESTART" : "no flags");
	if (a.returned) {
		finish(t);
		printf("%ld, error %d\n", a.ret, a.err);
		CHECK(ends);
	} else {
		CHECK_OK(pthread_cancel(t));
		CHECK(finish(t) == PTHREAD_CANCELED);
		puts("goes on");
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	set_up_waits();
	for (size_t i = 0; i < COUNT(points); i++) {
		interrupt_in(&points[i], 0);
		interrupt_in(&points[i], SA_RESTART);
	}
	tear_down_waits();
	return success();
}
