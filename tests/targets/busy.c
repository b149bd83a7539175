/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/busy.c - a process whose threads do one thing, for "fiberize check --running".
 *
 *	busy computes	a thread that never waits
 *	busy loops	two event loops that send each other a byte
 *	busy births	threads that are made, work for a moment and end
 *	busy idle	four threads that sleep
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int ends[2][2];

/* Use so much CPU time. */
static void work(long ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

static void *compute(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return arg;
}

static void *loop(void *arg)
{
	const int *mine = arg;
	int poll = epoll_create1(0), nothing = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	char byte;

	epoll_ctl(poll, EPOLL_CTL_ADD, mine[0], &event);
	while (epoll_wait(poll, &event, 1, -1) >= 0 && read(mine[0], &byte, 1) == 1) {
		work(100000);
		/* Not all of a processor's time. */
		epoll_wait(nothing, &event, 1, 1);
		if (write(mine[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

/* As long as the kernel needs to see it by its ticks. */
static void *live_briefly(void *arg)
{
	work(2000000);
	return arg;
}

static void *rest(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;
	int pipes[2][2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "loops") == 0) {
		if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 || write(pipes[0][1], "b", 1) != 1)
			return 1;
		for (int i = 0; i < 2; i++) {
			ends[i][0] = pipes[i][0];
			ends[i][1] = pipes[!i][1];
			pthread_create(&thread, NULL, loop, ends[i]);
		}
	} else if (strcmp(what, "computes") == 0) {
		pthread_create(&thread, NULL, compute, NULL);
	} else if (strcmp(what, "idle") == 0) {
		for (int i = 0; i < 4; i++)
			pthread_create(&thread, NULL, rest, NULL);
	}
	puts("ready");
	while (strcmp(what, "births") == 0)
		if (pthread_create(&thread, NULL, live_briefly, NULL) == 0)
			pthread_join(thread, NULL), usleep(5000);
	rest(NULL);
}
