/* SPDX-License-Identifier: MIT */
#include "wait_cost.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/*
 * One byte goes round a circle of threads: each thread waits in read() for the byte, then writes it to the
 * next thread.  The caller is the last thread.  As there is only one byte, each read really waits, which is
 * the most expensive kind of wait that servers use.
 */
enum { THREADS = 128, ROUNDS = 30, PLAIN = 4000 };

/* A time limit: on a machine with hundreds of busy threads one round may take minutes. */
static const double LONGEST = 0.5;	/* seconds */

struct circle {
	int pipes[THREADS + 1][2];
	pthread_t threads[THREADS];
	int pipe_count, thread_count;
};

struct seat {
	int from, to;
};

static void *pass_on(void *arg)
{
	const struct seat *seat = arg;
	char byte;

	while (read(seat->from, &byte, 1) == 1 && write(seat->to, &byte, 1) == 1)
		;
	return NULL;
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Send a byte count times and wait until it is back. Returns the CPU time of all threads per byte
 * in ns, or 0 if a byte is not back by the time end (seconds of CLOCK_MONOTONIC).
 */
static double send(int to, int from, int count, double end)
{
	const double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct pollfd back = { .fd = from, .events = POLLIN };
	char byte = 'b';

	for (int i = 0; i < count; i++) {
		const double left = end - seconds(CLOCK_MONOTONIC);

		if (write(to, &byte, 1) != 1 || left <= 0 || poll(&back, 1, (int)(1000 * left) + 1) != 1 ||
		    read(from, &byte, 1) != 1)
			return 0;
	}
	return (seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e9 / count;
}

static bool open_circle(struct circle *c, struct seat *seats)
{
	for (; c->pipe_count <= THREADS; c->pipe_count++)
		if (pipe2(c->pipes[c->pipe_count], O_CLOEXEC) != 0)
			return false;
	for (; c->thread_count < THREADS; c->thread_count++) {
		const int i = c->thread_count;

		seats[i] = (struct seat){ c->pipes[i][0], c->pipes[i + 1][1] };
		if (pthread_create(&c->threads[i], NULL, pass_on, &seats[i]) != 0)
			return false;
	}
	return true;
}

/* Close the pipes' write ends: each thread then reads the end of file and ends. */
static void close_circle(struct circle *c)
{
	for (int i = 0; i < c->pipe_count; i++)
		close(c->pipes[i][1]);
	for (int i = 0; i < c->thread_count; i++)
		pthread_join(c->threads[i], NULL);
	for (int i = 0; i < c->pipe_count; i++)
		close(c->pipes[i][0]);
}

double wait_cost_ns(void)
{
	const double end = seconds(CLOCK_MONOTONIC) + LONGEST;
	struct circle c = { .pipe_count = 0 };
	struct seat seats[THREADS];
	double plain = 0, round = 0;

	if (open_circle(&c, seats)) {
		const int first = c.pipes[0][1], last = c.pipes[THREADS][0];

		/* The cost without a wait: only this thread reads the last pipe. */
		plain = send(c.pipes[THREADS][1], last, PLAIN, end);
		/* The first round is not counted: in it each stack is touched for the first time. */
		if (plain > 0 && send(first, last, 1, end) > 0)
			round = send(first, last, ROUNDS, end);
	}
	close_circle(&c);
	return round / (THREADS + 1) > plain ? round / (THREADS + 1) - plain : 0;
}
