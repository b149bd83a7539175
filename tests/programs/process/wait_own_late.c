/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_own_late.c - __WNOTHREAD: a thread waits for its own child after the
 * process has had more children than any table of a fixed size holds, and no other thread does.
 */
#include "check.h"

#include <sys/wait.h>

enum { ROUNDS = 42, AT_ONCE = 100, KEPT = 20, STATUS = 3 };

static pthread_barrier_t barrier;
static pid_t kept[KEPT];

static pid_t make(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(STATUS);
	return pid;
}

/* All of its children have ended, and have not been waited for. */
static void *keeps(void *arg)
{
	siginfo_t info;
	int status;

	for (int i = 0; i < KEPT; i++) {
		kept[i] = make();
		CHECK_OK(waitid(P_PID, (id_t)kept[i], &info, WEXITED | WNOWAIT));
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < KEPT; i += 2) {
		CHECK_INT(waitpid(kept[i], &status, __WNOTHREAD), kept[i]);
		CHECK_INT(WEXITSTATUS(status), STATUS);
	}
	for (int i = 1; i < KEPT; i += 2)
		CHECK(waitpid(-1, &status, __WNOTHREAD) > 0);
	CHECK_ERR(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	return arg;
}

/* In the memory of its parent, which waits: that is quick. */
static int ends(void *arg)
{
	(void)arg;
	_exit(STATUS);
}

static void *makes_many(void *arg)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int status;

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < AT_ONCE; k++)
			CHECK(clone(ends, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
				    NULL) > 0);
		for (int k = 0; k < AT_ONCE; k++)
			CHECK(waitpid(-1, &status, __WNOTHREAD) > 0);
		CHECK_ERR(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	}
	return arg;
}

static void find_none(void)
{
	int status;

	CHECK_ERR(waitpid(-1, &status, __WNOTHREAD | WNOHANG), ECHILD);
	for (int i = 0; i < KEPT; i++)
		CHECK_ERR(waitpid(kept[i], &status, __WNOTHREAD | WNOHANG), ECHILD);
}

int main(void)
{
	pthread_t t;

	CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
	t = start(keeps, NULL);
	pthread_barrier_wait(&barrier);
	find_none();
	finish(start(makes_many, NULL));
	find_none();
	pthread_barrier_wait(&barrier);
	finish(t);
	return success();
}
