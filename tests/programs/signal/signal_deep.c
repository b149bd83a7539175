/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_deep.c - threads overflow their stacks again and again, and
 * leave the handler, which runs on an alternate stack, by siglongjmp, while another process
 * floods this one with signals.
 */
#include "check.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { THREADS = 8, TIMES = 50, ALT_STACK = 65536, STACK = 128 * 1024 };

static __thread sigjmp_buf jump;
static __thread volatile sig_atomic_t deep;

static void overflown(int sig, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	CHECK(deep);
	deep = 0;
	siglongjmp(jump, sig);
}

static void nothing(int sig)
{
	(void)sig;
}

static volatile sig_atomic_t for_ever = 1;

static __attribute__((noinline)) int overflow(volatile char *above, int n)
{
	volatile char frame[512];

	frame[0] = (char)n;
	frame[sizeof(frame) - 1] = above ? above[0] : 0;
	return for_ever ? overflow(frame, n + 1) + frame[0] : 0;
}

static void check_state(const stack_t *stack)
{
	stack_t now;
	sigset_t mask;

	CHECK_OK(sigaltstack(NULL, &now));
	CHECK(now.ss_sp == stack->ss_sp);
	CHECK_INT(now.ss_flags, 0);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
	CHECK_INT(sigismember(&mask, SIGSEGV), 0);
	CHECK_INT(sigismember(&mask, SIGUSR1), 0);
}

static void *overflows(void *arg)
{
	stack_t stack = { .ss_sp = malloc(ALT_STACK), .ss_size = ALT_STACK };
	const stack_t none = { .ss_flags = SS_DISABLE };

	CHECK_OK(sigaltstack(&stack, NULL));
	for (int i = 0; i < TIMES; i++) {
		if (sigsetjmp(jump, 1) == 0) {
			deep = 1;
			overflow(NULL, i);
		}
		if (i % 4 == 0)
			usleep(100);
		check_state(&stack);
	}
	CHECK_OK(sigaltstack(&none, NULL));
	free(stack.ss_sp);
	return arg;
}

static pid_t flood(void)
{
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	while (pid == 0) {
		if (kill(parent, SIGUSR1) < 0 || kill(parent, SIGUSR2) < 0)
			_exit(1);
		for (volatile int i = 0; i < 300; i++)
			continue;
	}
	return pid;
}

static void run(int flags)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = SA_RESTART | flags };
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	pid_t pid;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	CHECK_INT(pthread_attr_init(&attr), 0);
	CHECK_INT(pthread_attr_setstacksize(&attr, STACK), 0);
	pid = flood();
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], &attr, overflows, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	CHECK_OK(kill(pid, SIGKILL));
	while (waitpid(pid, NULL, 0) < 0)
		CHECK_INT(errno, EINTR);
	pthread_attr_destroy(&attr);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = overflown, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	for (int i = 0; i < 3; i++) {
		run(0);
		run(SA_ONSTACK);
	}
	return success();
}
