/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_contexts.c - contexts (ucontext) with signal masks of their own,
 * in a thread: a signal that one context blocks is handled in the other.
 */
#include "check.h"

#include <ucontext.h>

enum { SIG = SIGUSR1, ROUNDS = 50, STACK = 256 * 1024, THREADS = 4 };

static __thread int handled;
static _Atomic int for_process;

static void handler(int sig)
{
	CHECK_INT(sig, SIG);
	handled++;
	for_process++;
}

static int is_blocked(void)
{
	sigset_t set;

	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &set));
	return sigismember(&set, SIG);
}

struct contexts {
	ucontext_t outer, inner, last;
	sigset_t none, blocked;
	int rounds;
};

/* Blocks it: what comes is pending until the other context lets it in. */
static void inner(unsigned high, unsigned low)
{
	struct contexts *c = (struct contexts *)(((uintptr_t)high << 32) | low);
	int before;

	for (; c->rounds < ROUNDS; c->rounds++) {
		CHECK_INT(is_blocked(), 1);
		before = handled;
		CHECK_OK(pthread_kill(pthread_self(), SIG));
		usleep(100);
		CHECK_INT(handled, before);
		CHECK_OK(swapcontext(&c->inner, &c->outer));
	}
	/* It goes on at uc_link with that one's mask, whatever this is. */
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &c->none, NULL));
}

static void *has_contexts(void *arg)
{
	struct contexts *c = calloc(1, sizeof(*c));
	void *stack = malloc(STACK);
	uintptr_t address = (uintptr_t)c;
	volatile int again = 0;

	CHECK(c && stack);
	sigemptyset(&c->none);
	sigemptyset(&c->blocked);
	sigaddset(&c->blocked, SIG);
	CHECK_OK(getcontext(&c->inner));
	c->inner.uc_stack.ss_sp = stack;
	c->inner.uc_stack.ss_size = STACK;
	c->inner.uc_link = &c->outer;
	c->inner.uc_sigmask = c->blocked;
	makecontext(&c->inner, (void (*)(void))inner, 2, (unsigned)(address >> 32),
		    (unsigned)address);
	for (int i = 0; i <= ROUNDS; i++) {
		CHECK_INT(is_blocked(), 0);
		CHECK_INT(handled, i);
		CHECK_OK(swapcontext(&c->outer, &c->inner));
	}
	CHECK_INT(handled, ROUNDS);
	CHECK_INT(c->rounds, ROUNDS);
	/* setcontext to where getcontext was. */
	CHECK_OK(getcontext(&c->last));
	CHECK_INT(is_blocked(), 0);
	if (!again++) {
		CHECK_OK(pthread_sigmask(SIG_SETMASK, &c->blocked, NULL));
		CHECK_OK(pthread_kill(pthread_self(), SIG));
		CHECK_INT(handled, ROUNDS);
		setcontext(&c->last);
	}
	CHECK_INT(handled, ROUNDS + 1);
	free(stack);
	free(c);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t[THREADS];

	CHECK_INT(sigaction(SIG, &sa, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(has_contexts, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(for_process, THREADS * (ROUNDS + 1));
	return success();
}
