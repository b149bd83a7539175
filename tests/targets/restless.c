/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/restless.c - a process that never stays what it is: it makes threads, forks, and
 * executes itself.
 *
 *	restless TIMES	executes itself TIMES times, and ends
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 50 };

static void *waits(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	const int times = argc > 1 ? atoi(argv[1]) : 0;
	char left[16];
	pthread_t thread;
	pid_t child;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, waits, NULL);
	child = fork();
	if (child == 0)
		_exit(0);
	if (waitpid(child, NULL, 0) != child)
		return 1;
	if (times <= 0)
		return 0;
	snprintf(left, sizeof(left), "%d", times - 1);
	execl("/proc/self/exe", argv[0], left, (char *)NULL);
	return 1;
}
