/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_before_call.c - a thread has handled a signal, and then makes a call that waits: the sender,
 * which may still be at work, does not end that call with EINTR.
 */
#include "check.h"

#include <sched.h>
#include <signal.h>

enum { ROUNDS = 1000 };

static __thread volatile sig_atomic_t handled;
static _Atomic int slept;

static void handler(int sig)
{
	(void)sig;
	handled = 1;
}

static void *sleeps(void *arg)
{
	const struct timespec span = { 0, 1000 };

	for (int i = 0; i < ROUNDS; i++) {
		while (!handled)
			continue;
		handled = 0;
		CHECK_OK(nanosleep(&span, NULL));
		slept++;
	}
	return arg;
}

int main(void)
{
	const struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	t = start(sleeps, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		while (slept <= i)
			sched_yield();
	}
	finish(t);
	return success();
}
