/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/fair_bursts.c - many more threads than CPUs compute for some
 * milliseconds at a time and sleep in between: threads that wait for a message, or for a time,
 * run before the process has used much CPU time.
 */
#include "check.h"

#include <sys/socket.h>

enum { COMPUTING = 16, BURST_MS = 4, PAUSE_US = 2000, MESSAGES = 20, PATIENCE_S = 12 };

static _Atomic int stop;

static void *computes_in_bursts(void *arg)
{
	while (!stop) {
		long long until = now(CLOCK_THREAD_CPUTIME_ID) + BURST_MS * MS;

		while (now(CLOCK_THREAD_CPUTIME_ID) < until)
			for (volatile int i = 0; i < 20000; i = i + 1)
				continue;
		usleep(PAUSE_US);
	}
	return arg;
}

static void *answers(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (read(fd, &c, 1) == 1)
		CHECK_INT(write(fd, &c, 1), 1);
	return arg;
}

int main(void)
{
	pthread_t t[COMPUTING], answering;
	long long begin;
	int pair[2];
	char c = 'x';

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	answering = start(answers, &pair[1]);
	for (int i = 0; i < COMPUTING; i++)
		t[i] = start(computes_in_bursts, NULL);
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_INT(write(pair[0], &c, 1), 1);
		CHECK_INT(read(pair[0], &c, 1), 1);
		usleep(1000);
	}
	stop = 1;
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - begin < PATIENCE_S * 1000 * MS);
	CHECK_OK(shutdown(pair[0], SHUT_WR));
	for (int i = 0; i < COMPUTING; i++)
		finish(t[i]);
	finish(answering);
	return success();
}
