/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/stack_code.c - a program that says that it needs executable stacks: threads
 * run code on their stacks, in their first lives and later ones, parked meanwhile, and in a child.
 */
#include "check.h"
#include "stack_code.h"

#include <sys/wait.h>

enum { THREADS = 8, ROUNDS = 3 };

static void *run(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < 10; i++) {
		CHECK_INT(value_from_stack(100 * id + i), 100 * id + i);
		usleep(100);
	}
	return arg;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int round = 0; round < ROUNDS; round++) {
		for (intptr_t k = 0; k < THREADS; k++)
			threads[k] = start(run, (void *)k);
		for (int k = 0; k < THREADS; k++)
			finish(threads[k]);
	}
	run((void *)77);
}

int main(void)
{
	pid_t child;
	int status;

	run_threads();
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		run_threads();
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	return success();
}
