/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_basic.c - create, join, detach, exit, names, attributes. */
#include "check.h"

#include <sys/prctl.h>

#define LOOPS 1000

static struct event ready = EVENT_INIT, go = EVENT_INIT, gone = EVENT_INIT;
static char order[16];
static int order_len;

static void *echo(void *arg)
{
	return arg;
}

static void *wait_for_go(void *arg)
{
	event_post(&ready);
	event_wait(&go, (int)(intptr_t)arg);
	return arg;
}

static void note(void *arg)
{
	order[order_len++] = *(char *)arg;
}

static __attribute__((noinline)) int leave_deep(int depth)
{
	if (depth)
		return leave_deep(depth - 1) + 1;
	if (order_len > 0)
		pthread_exit((void *)0x1234);
	return 0;
}

static void *exit_nested(void *arg)
{
	pthread_cleanup_push(note, "a");
	pthread_cleanup_push(note, "b");
	pthread_cleanup_push(note, "c");
	pthread_cleanup_pop(1);
	pthread_cleanup_push(note, "d");
	pthread_cleanup_pop(0);
	arg = (void *)(intptr_t)leave_deep(20);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return arg;
}

static void *detached(void *arg)
{
	if (arg)
		CHECK_OK(pthread_detach(pthread_self()));
	event_post(&gone);
	return NULL;
}

static void *join_self(void *arg)
{
	CHECK_INT(pthread_join(pthread_self(), NULL), EDEADLK);
	CHECK_INT(pthread_tryjoin_np(pthread_self(), NULL), EBUSY);
	return arg;
}

static void values(void)
{
	pthread_t t[8];

	for (intptr_t i = 0; i < 8; i++)
		t[i] = start(echo, (void *)(i * 3));
	for (intptr_t i = 7; i >= 0; i--)
		CHECK(finish(t[i]) == (void *)(i * 3));
	t[0] = start(echo, NULL);
	CHECK_OK(pthread_join(t[0], NULL));
	/* A thread that has long ended can still be joined. */
	t[0] = start(echo, (void *)-1L);
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK(finish(t[0]) == PTHREAD_CANCELED);

	for (intptr_t i = 0; i < LOOPS; i++)
		CHECK(finish(start(echo, (void *)i)) == (void *)i);
	puts("values");
}

static void exits(void)
{
	CHECK(finish(start(exit_nested, NULL)) == (void *)0x1234);
	order[order_len] = 0;
	printf("exit: %s\n", order);
}

static void detaching(void)
{
	pthread_t t;

	for (int i = 0; i < 50; i++) {
		t = start(detached, (void *)1);
		(void)t;
	}
	event_wait(&gone, 50);
	t = start(wait_for_go, (void *)1);
	event_wait(&ready, 1);
	CHECK_OK(pthread_detach(t));
	CHECK_INT(pthread_detach(t), EINVAL);
	CHECK_INT(pthread_join(t, NULL), EINVAL);
	event_post(&go);
	puts("detached");
}

static void timed_joins(void)
{
	struct timespec ts;
	void *value = "untouched";
	long long t0;
	pthread_t t;
	int r;

	t = start(wait_for_go, (void *)2);
	event_wait(&ready, 2);
	CHECK_INT(pthread_tryjoin_np(t, &value), EBUSY);
	CHECK_OK(strcmp(value, "untouched"));
	ts = in(CLOCK_REALTIME, -1000 * MS);
	CHECK_INT(pthread_timedjoin_np(t, &value, &ts), ETIMEDOUT);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 20 * MS);
	CHECK_INT(pthread_timedjoin_np(t, &value, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= t0 + 20 * MS);
	t0 = now(CLOCK_MONOTONIC);
	ts = to_timespec(t0 + 20 * MS);
	CHECK_INT(pthread_clockjoin_np(t, &value, CLOCK_MONOTONIC, &ts),
		  ETIMEDOUT);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 20 * MS);
	CHECK_INT(pthread_clockjoin_np(t, &value, CLOCK_PROCESS_CPUTIME_ID, &ts),
		  EINVAL);
	CHECK_OK(strcmp(value, "untouched"));

	event_post(&go);
	while ((r = pthread_tryjoin_np(t, &value)) == EBUSY)
		sched_yield();
	CHECK_OK(r);
	CHECK(value == (void *)2);

	/* A deadline in the past does not matter for a thread that has ended. */
	t = start(wait_for_go, (void *)2);
	CHECK_OK(pthread_timedjoin_np(t, &value, NULL));
	CHECK(value == (void *)2);
	t = start(wait_for_go, (void *)2);
	ts = in(CLOCK_MONOTONIC, 10000 * MS);
	CHECK_OK(pthread_clockjoin_np(t, &value, CLOCK_MONOTONIC, &ts));
	puts("timed joins");
}

static void *named(void *arg)
{
	char name[16];

	CHECK_OK(pthread_setname_np(pthread_self(), "worker"));
	CHECK_OK(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_OK(strcmp(name, "worker"));
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK_OK(strcmp(name, "worker"));
	event_post(&ready);
	event_wait(&go, 3);
	CHECK_OK(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_OK(strcmp(name, "fifteen-letters"));
	return arg;
}

static void *inherits_name(void *arg)
{
	char name[16];

	CHECK_OK(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_OK(strcmp(name, "parent"));
	return arg;
}

static void names(void)
{
	char name[16];
	pthread_t t;

	ready.count = 0;
	t = start(named, NULL);
	event_wait(&ready, 1);
	CHECK_OK(pthread_getname_np(t, name, sizeof(name)));
	CHECK_OK(strcmp(name, "worker"));
	CHECK_INT(pthread_setname_np(t, "sixteen-letters!"), ERANGE);
	CHECK_INT(pthread_getname_np(t, name, 15), ERANGE);
	CHECK_OK(pthread_setname_np(t, "fifteen-letters"));
	CHECK_OK(pthread_getname_np(t, name, sizeof(name)));
	CHECK_OK(strcmp(name, "fifteen-letters"));
	event_post(&go);
	finish(t);
	CHECK_OK(pthread_setname_np(pthread_self(), "parent"));
	finish(start(inherits_name, NULL));
	puts("names");
}

static void *stack_bounds(void *arg)
{
	pthread_attr_t attr;
	size_t size, guard;
	void *base;
	int state;

	CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &base, &size));
	CHECK((char *)base < (char *)&attr);
	CHECK((char *)&attr < (char *)base + size);
	CHECK(size >= 16384);
	CHECK_OK(pthread_attr_getdetachstate(&attr, &state));
	CHECK_INT(state, PTHREAD_CREATE_JOINABLE);
	CHECK_OK(pthread_attr_getguardsize(&attr, &guard));
	CHECK_OK(pthread_attr_destroy(&attr));
	return arg;
}

static void *get_self(void *arg)
{
	pthread_t *out = arg;

	*out = pthread_self();
	CHECK(pthread_equal(*out, pthread_self()));
	return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_runs;

static void run_once(void)
{
	usleep(2000);
	once_runs++;
}

static void *call_once_(void *arg)
{
	CHECK_OK(pthread_once(&once, run_once));
	CHECK_INT(once_runs, 1);
	return arg;
}

int main(void)
{
	pthread_t t, self, many[16];

	values();
	exits();
	detaching();
	finish(start(join_self, NULL));
	timed_joins();
	names();

	stack_bounds(NULL);
	finish(start(stack_bounds, NULL));
	t = start(get_self, &self);
	finish(t);
	CHECK(pthread_equal(t, self));
	CHECK(!pthread_equal(t, pthread_self()));
	puts("self");

	for (int i = 0; i < 16; i++)
		many[i] = start(call_once_, NULL);
	for (int i = 0; i < 16; i++)
		finish(many[i]);
	puts("once");
	CHECK_OK(sched_yield());
	return success();
}
