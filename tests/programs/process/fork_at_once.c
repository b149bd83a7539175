/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_at_once.c - many threads that fork, allocate and make threads, all at
 * once: fork holds libc's locks for as long as the kernel takes.
 */
#include "check.h"

#include <sys/wait.h>

enum { THREADS = 12, ROUNDS = 25 };

static void *allocates(void *arg)
{
	usleep(500);
	free(malloc(1000));
	return arg;
}

static void *forks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *block = malloc(5000 + 100 * (size_t)i);
		pthread_t t = start(allocates, arg);
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(7);
		memset(block, 1, 5000);
		free(block);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		CHECK(finish(t) == arg);
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		t[i] = start(forks, &t[i]);
	for (int i = 0; i < THREADS; i++)
		CHECK(finish(t[i]) == &t[i]);
	return success();
}
