/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_loading.c - a fork in the middle of another thread's dlopen leaves the
 * child with a loader that says so to debuggers; the child can make threads all the same.
 */
#include "check.h"

#include <link.h>
#include <sys/wait.h>

static void *nothing(void *arg)
{
	return arg;
}

/* The loader's own record; _r_debug would be the program's copy. */
static struct r_debug *loader(void)
{
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_DEBUG)
			return (struct r_debug *)d->d_un.d_ptr;
	return NULL;
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
