/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/clone_state.c - a child that runs in the memory of the process changes its own state in the
 * kernel: that is no thread's of the process.
 */
#include "check.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TIMES = 5, STACK = 64 * 1024, SLACK = 70000 };

static _Alignas(16) char stack[STACK];

/* Ends by a system call: an exit() would run what the process has registered. */
static int child(void *arg)
{
	const int ok = prctl(PR_SET_TIMERSLACK, SLACK) == 0 && prctl(PR_GET_TIMERSLACK) == SLACK;

	return ok ? *(int *)arg : 1;
}

static void *makes(void *arg)
{
	int status;
	const pid_t pid = clone(child, stack + STACK, CLONE_VM | SIGCHLD, arg);

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), *(int *)arg);
	CHECK(prctl(PR_GET_TIMERSLACK) != SLACK);
	return arg;
}

int main(void)
{
	int code = 3;

	for (int i = 0; i < TIMES; i++)
		finish(start(makes, &code));
	return success();
}
