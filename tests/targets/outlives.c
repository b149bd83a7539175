/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/outlives.c - a program that stops its parent, "fiberize trace", sleeps COUNT times in a
 * thread, and ends.
 *
 *	outlives COUNT [kill]	ends with 3, or by SIGKILL
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int count;

static void *sleeps(void *arg)
{
	for (int i = 0; i < count; i++)
		usleep(2000);
	return arg;
}

static void run_one(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleeps, NULL) != 0 || pthread_join(thread, NULL) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	count = argc > 1 ? atoi(argv[1]) : 1;
	/* Until the parent traces: it may need some time. */
	puts("ready");
	fflush(stdout);
	getchar();
	kill(getppid(), SIGSTOP);
	run_one();
	puts("over");
	fflush(stdout);
	if (argc > 2)
		kill(getpid(), SIGKILL);
	return 3;
}
