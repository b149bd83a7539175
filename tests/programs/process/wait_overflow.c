/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_overflow.c - a wait for a child with little stack left may overflow it; a handler for that leaves
 * by siglongjmp. Then the thread's other handlers run as before.
 */
#include "check.h"

#include <setjmp.h>

static sigjmp_buf before;
static pthread_t waiter;
static volatile sig_atomic_t handled;
static uintptr_t lowest, room;
static pid_t child;

/* The child ends once the parent has slept. */
static void end_late(void)
{
	for (int i = 0; i < 20; i++)
		settle();
	_exit(0);
}

static void jump(int sig)
{
	(void)sig;
	siglongjmp(before, 1);
}

static void count(int sig)
{
	(void)sig;
	handled += pthread_equal(pthread_self(), waiter) != 0;
}

/* Use up the stack but for `room`, and wait. */
static __attribute__((noinline)) int wait_with_little_room(void)
{
	volatile char pad[64] = { 1 };
	int status;

	if ((uintptr_t)__builtin_frame_address(0) - lowest > room)
		return wait_with_little_room() + pad[0];
	return (int)waitpid(child, &status, 0) + pad[0];
}

static void *waits(void *arg)
{
	const struct sigaction fault = { .sa_handler = jump, .sa_flags = SA_ONSTACK };
	const struct sigaction other = { .sa_handler = count };
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	pthread_attr_t attr;
	size_t size;
	void *low;

	waiter = pthread_self();
	CHECK_OK(pthread_getattr_np(waiter, &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
	CHECK_OK(pthread_attr_destroy(&attr));
	lowest = (uintptr_t)low;
	CHECK_OK(sigaltstack(&stack, NULL));
	CHECK_OK(sigaction(SIGSEGV, &fault, NULL));
	CHECK_OK(sigaction(SIGUSR1, &other, NULL));
	for (room = 1500; room < 6000; room += 500) {
		child = fork();
		if (child == 0)
			end_late();
		CHECK(child > 0);
		if (!sigsetjmp(before, 1))
			wait_with_little_room();
		handled = 0;
		CHECK_OK(pthread_kill(waiter, SIGUSR1));
		CHECK_INT(handled, 1);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK_OK(sigaltstack(&stack, NULL));
	free(stack.ss_sp);
	return arg;
}

int main(void)
{
	finish(start(waits, NULL));
	return success();
}
