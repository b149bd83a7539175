/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_loading.c - a fork in the middle of another thread's dlopen leaves the
 * child with a loader that says so to debuggers; the child can make threads all the same.
 */
#include "check.h"
#include "loader.h"

#include <sys/wait.h>

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t t = start(nothing, &t);
	int status;
	pid_t pid;

	CHECK(loader());
	CHECK(finish(t) == &t);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		loader()->r_state = RT_ADD;
		t = start(nothing, &t);
		CHECK(finish(t) == &t);
		_exit(7);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return success();
}
