/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_altstack.c - alternate signal stacks are a thread's own; stack overflow can be handled on one.
 */
#include "check.h"

#include <setjmp.h>
#include <stdbool.h>
#include <ucontext.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { SIZE = 65536, THREADS = 8, ROUNDS = 20 };

static __thread char *low;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t on_it, not_on_it, overflows;
static __thread char *stack_low;

static bool is_on_it(void)
{
	char here;

	return low && (uintptr_t)&here - (uintptr_t)low < SIZE;
}

static void look(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	stack_t now;

	(void)sig;
	(void)info;
	if (is_on_it())
		on_it++;
	else
		not_on_it++;
	if (low) {
		CHECK(uc->uc_stack.ss_sp == low);
		CHECK_INT(uc->uc_stack.ss_size, SIZE);
		CHECK_OK(sigaltstack(NULL, &now));
		CHECK_INT(now.ss_flags & SS_ONSTACK, is_on_it() ? SS_ONSTACK : 0);
		if (is_on_it()) {
			now.ss_flags = SS_DISABLE;
			CHECK_ERR(sigaltstack(&now, NULL), EPERM);
		}
	}
	/* Others run, with other stacks, and we may go on elsewhere. */
	usleep(500);
	sched_yield();
}

static void overflowed(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_INT(sig, SIGSEGV);
	CHECK(is_on_it());
	CHECK((char *)info->si_addr < stack_low + 65536);
	overflows++;
	usleep(300);
	siglongjmp(back, 1);
}

/*
 * Each frame is smaller than the guard page, and not joined with others by inlining: else the
 * overflow writes to the stack below before it meets the guard.
 */
static __attribute__((noinline)) int deeper(int n)
{
	volatile char room[1024];

	room[0] = (char)n;
	room[sizeof(room) - 1] = (char)(n + 1);
	if (n == -1)
		return 0;
	return deeper(n + 1) + room[0] + room[sizeof(room) - 1];
}

static void set_up(void)
{
	stack_t stack = { .ss_size = SIZE }, old;

	low = malloc(SIZE);
	stack.ss_sp = low;
	CHECK_OK(sigaltstack(&stack, &old));
	CHECK_INT(old.ss_flags, SS_DISABLE);
	CHECK_OK(sigaltstack(NULL, &old));
	CHECK(old.ss_sp == low);
	CHECK_INT(old.ss_flags, 0);
	CHECK_INT(old.ss_size, SIZE);
	stack.ss_size = 100;
	CHECK_ERR(sigaltstack(&stack, NULL), ENOMEM);
	stack.ss_flags = 77;
	stack.ss_size = SIZE;
	CHECK_ERR(sigaltstack(&stack, NULL), EINVAL);
}

static void tear_down(void)
{
	stack_t stack = { .ss_flags = SS_DISABLE }, old;

	CHECK_OK(sigaltstack(&stack, &old));
	CHECK(old.ss_sp == low);
	free(low);
	low = NULL;
}

static void *has_one(void *arg)
{
	pthread_attr_t attr;
	void *addr;
	size_t size;

	CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &addr, &size));
	pthread_attr_destroy(&attr);
	stack_low = addr;
	on_it = not_on_it = overflows = 0;
	set_up();
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(raise(SIGUSR1));		/* SA_ONSTACK */
		CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));	/* not */
		usleep(200);
		if (sigsetjmp(back, 1) == 0) {
			deeper(0);
			CHECK(0);
		}
	}
	CHECK_INT(on_it, ROUNDS);
	CHECK_INT(not_on_it, ROUNDS);
	CHECK_INT(overflows, ROUNDS);
	tear_down();
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(on_it, ROUNDS);
	CHECK_INT(not_on_it, ROUNDS + 1);
	return arg;
}

static void *has_none(void *arg)
{
	stack_t now;

	on_it = not_on_it = 0;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(sigaltstack(NULL, &now));
		CHECK_INT(now.ss_flags, SS_DISABLE);
		CHECK_OK(raise(SIGUSR1));
		usleep(200);
	}
	CHECK_INT(on_it, 0);
	CHECK_INT(not_on_it, ROUNDS);
	return arg;
}

/* Not in force while a handler runs on it, and again after that. */
static void disarmed(int sig)
{
	stack_t now;

	(void)sig;
	CHECK(is_on_it());
	CHECK_OK(sigaltstack(NULL, &now));
	CHECK_INT(now.ss_flags, SS_DISABLE);
	usleep(300);
	on_it++;
}

static void *disarms(void *arg)
{
	stack_t stack = { .ss_size = SIZE, .ss_flags = (int)SS_AUTODISARM }, now;

	on_it = 0;
	low = stack.ss_sp = malloc(SIZE);
	CHECK_OK(sigaltstack(&stack, NULL));
	for (int i = 0; i < 5; i++) {
		CHECK_OK(raise(SIGHUP));
		usleep(100);
		CHECK_OK(sigaltstack(NULL, &now));
		CHECK(now.ss_sp == low);
	}
	CHECK_INT(on_it, 5);
	stack.ss_flags = SS_DISABLE;
	CHECK_OK(sigaltstack(&stack, NULL));
	free(low);
	low = NULL;
	return arg;
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = flags | SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	CHECK_OK(sigaction(sig, &sa, NULL));
}

int main(void)
{
	struct sigaction sa = { .sa_handler = disarmed, .sa_flags = SA_ONSTACK };
	pthread_t t[2 * THREADS];
	pthread_attr_t attr;

	/* Set before there are threads: still the main thread's own later. */
	set_up();
	handle(SIGUSR1, look, SA_ONSTACK);
	handle(SIGUSR2, look, 0);
	handle(SIGSEGV, overflowed, SA_ONSTACK);
	CHECK_OK(sigaction(SIGHUP, &sa, NULL));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (int i = 0; i < 2 * THREADS; i++)
		CHECK_OK(pthread_create(&t[i], &attr, i % 2 ? has_none : has_one, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(raise(SIGUSR1));
		usleep(300);
	}
	CHECK_INT(on_it, ROUNDS);
	for (int i = 0; i < 2 * THREADS; i++)
		finish(t[i]);
	/* Whoever comes next has none. */
	for (int i = 0; i < 2 * THREADS; i++)
		CHECK_OK(pthread_create(&t[i], &attr, has_none, NULL));
	for (int i = 0; i < 2 * THREADS; i++)
		finish(t[i]);
	tear_down();
	finish(start(disarms, NULL));
	return success();
}
