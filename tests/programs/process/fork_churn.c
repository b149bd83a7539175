/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_churn.c [FORKS] - fork while other threads are being made and
 * end: the child can make threads of its own.
 */
#include "check.h"

#include <sys/wait.h>

enum { CHURNERS = 6, FORKERS = 2 };

static volatile int stop;
static int forks = 60;

static void *nothing(void *arg)
{
	return arg;
}

/* Some are new, some have been threads before; of several sizes. */
static void *churns(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	while (!stop) {
		pthread_t t[3];
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536 * (1 + n++ % 20));
		for (size_t i = 0; i < COUNT(t); i++)
			CHECK_OK(pthread_create(&t[i], i ? &attr : NULL, nothing, NULL));
		for (size_t i = 0; i < COUNT(t); i++)
			finish(t[i]);
		pthread_attr_destroy(&attr);
	}
	return NULL;
}

static int child(int code)
{
	for (int round = 0; round < 3; round++) {
		pthread_t t[4];

		for (size_t i = 0; i < COUNT(t); i++)
			t[i] = start(nothing, NULL);
		for (size_t i = 0; i < COUNT(t); i++)
			finish(t[i]);
	}
	return code;
}

static void *makes_children(void *arg)
{
	for (int i = 0; i < forks; i++) {
		int code = 1 + i % 100, status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(child(code));
		while (waitpid(pid, &status, 0) != pid)
			CHECK_INT(errno, EINTR);
		CHECK_INT(status, code << 8);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t churners[CHURNERS], forkers[FORKERS];

	if (argc > 1)
		forks = atoi(argv[1]);
	for (int i = 0; i < CHURNERS; i++)
		churners[i] = start(churns, (void *)(uintptr_t)(7 * i));
	makes_children(NULL);
	puts("by the main thread");
	for (int i = 0; i < FORKERS; i++)
		forkers[i] = start(makes_children, NULL);
	for (int i = 0; i < FORKERS; i++)
		finish(forkers[i]);
	puts("by threads");
	stop = 1;
	for (int i = 0; i < CHURNERS; i++)
		finish(churners[i]);
	return success();
}
