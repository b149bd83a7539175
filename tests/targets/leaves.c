/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/leaves.c - a process whose first kernel thread has ended, while others go on.
 *
 *	leaves		its main thread leaves by pthread_exit
 *	leaves raw	its kernel thread leaves by a system call that no library sees; under a library
 *			that moves threads, once the main thread is on the first kernel thread
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "raw_call.h"

enum { THREADS = 3 };

static void *naps(void *arg)
{
	for (;;)
		usleep(10000);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, naps, NULL) != 0)
			return 1;
	puts("ready");
	fflush(stdout);
	while (argc > 1)
		if (raw_call(SYS_gettid) == getpid())
			raw_call(SYS_exit);
		else
			usleep(1000);
	pthread_exit(NULL);
}
