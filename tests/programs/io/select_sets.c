/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/select_sets.c - while select or pselect waits, the caller's sets are as the caller made them, for a
 * signal handler, a clean-up handler and another thread that waits with the same sets; what a handler changes stays.
 */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/select.h>

enum does { NOTHING, CLEARS, ADDS, JUMPS };

struct call {
	bool masked;		/* pselect with a mask of its own, instead of select */
	enum does handler;
};

static int input[2], other[2];
static fd_set set;
static enum does handler_does;
static volatile sig_atomic_t seen;
static sigjmp_buf back;
static struct event about_to_wait = EVENT_INIT;

static void handler(int sig)
{
	(void)sig;
	seen = FD_ISSET(input[0], &set) ? 1 : 0;
	if (handler_does == CLEARS)
		FD_CLR(input[0], &set);
	if (handler_does == ADDS)
		FD_SET(other[0], &set);
	if (handler_does == JUMPS)
		siglongjmp(back, 1);
}

static int waits(const struct call *c)
{
	const int n = other[0] + 1;
	sigset_t mask;

	event_post(&about_to_wait);
	if (!c->masked)
		return select(n, &set, NULL, NULL, NULL);
	sigemptyset(&mask);
	return pselect(n, &set, NULL, NULL, NULL, &mask);
}

static void set_up(enum does what)
{
	handler_does = what;
	seen = -1;
	about_to_wait.count = 0;
	FD_ZERO(&set);
	FD_SET(input[0], &set);
}

static void *is_interrupted(void *arg)
{
	const struct call *c = arg;

	if (sigsetjmp(back, 1) == 0)
		CHECK_ERR(waits(c), EINTR);
	return NULL;
}

static void interrupt(const struct call *c)
{
	pthread_t t;

	set_up(c->handler);
	t = start(is_interrupted, (void *)c);
	event_wait(&about_to_wait, 1);
	await_others();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	CHECK_INT(seen, 1);
	CHECK_INT(!!FD_ISSET(input[0], &set), c->handler != CLEARS);
	CHECK_INT(!!FD_ISSET(other[0], &set), c->handler == ADDS);
}

static bool cleaned_up;

static void cleans_up(void *arg)
{
	(void)arg;
	cleaned_up = FD_ISSET(input[0], &set);
}

static void *is_cancelled(void *arg)
{
	pthread_cleanup_push(cleans_up, NULL);
	waits(arg);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(const struct call *c)
{
	void *result;
	pthread_t t;

	set_up(NOTHING);
	cleaned_up = false;
	t = start(is_cancelled, (void *)c);
	event_wait(&about_to_wait, 1);
	await_others();
	CHECK_OK(pthread_cancel(t));
	CHECK_OK(pthread_join(t, &result));
	CHECK(result == PTHREAD_CANCELED);
	CHECK(cleaned_up);
}

static void *receives(void *arg)
{
	char c;

	CHECK_INT(waits(arg), 1);
	CHECK_INT(read(input[0], &c, 1), 1);
	return NULL;
}

/* What is ready is all that there is in the set, so each answer is what the next caller asks for. */
static void share(const struct call *c)
{
	pthread_t t[2];

	set_up(NOTHING);
	for (int i = 0; i < 2; i++) {
		t[i] = start(receives, (void *)c);
		event_wait(&about_to_wait, i + 1);
		await_others();
	}
	CHECK_INT(write(input[1], "xx", 2), 2);
	finish(t[0]);
	finish(t[1]);
}

/* Nothing is ready: the sets are empty, whether the call waited or not. */
static void *times_out(void *arg)
{
	const struct call *c = arg;
	const struct timespec times[] = { { 0, 0 }, { 0, 2 * MS } };
	sigset_t mask;

	sigemptyset(&mask);
	for (int i = 0; i < 2; i++) {
		set_up(NOTHING);
		CHECK_INT(pselect(other[0] + 1, &set, NULL, NULL, &times[i], c->masked ? &mask : NULL), 0);
		CHECK(!FD_ISSET(input[0], &set));
	}
	return NULL;
}

int main(void)
{
	const struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(pipe(input));
	CHECK_OK(pipe(other));
	for (int masked = 0; masked < 2; masked++) {
		struct call c = { .masked = masked };

		for (c.handler = NOTHING; c.handler <= JUMPS; c.handler++)
			interrupt(&c);
		cancel(&c);
		share(&c);
		finish(start(times_out, &c));
	}
	return success();
}
