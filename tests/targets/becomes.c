/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/becomes.c - a process with threads that changes when it is told to.
 *
 *	becomes FIFO [PROGRAM [ARGUMENT...]]	on SIGUSR1 executes PROGRAM, or ends
 *
 * It has FIFO open until then; "-": none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 5 };

static void *waits(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, waits, NULL) != 0)
			return 1;
	/* A reader need not be there yet. */
	if (argc > 1 && strcmp(argv[1], "-") != 0 && open(argv[1], O_RDWR | O_CLOEXEC) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	if (sigwait(&set, &signal) != 0)
		return 1;
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (argc > 2)
		execvp(argv[2], argv + 2);
	_exit(argc > 2);
}
