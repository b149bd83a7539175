/* SPDX-License-Identifier: MIT */
#include "wait_cost.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/*
 * A circle of threads, each of which waits for a byte of the one before it; this one is the last.  One byte
 * goes round, so that each read waits: of all ways to wait, the dearest that servers know.
 */
enum { THREADS = 128, ROUNDS = 30, PLAIN = 4000 };

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

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Send a byte count times; the CPU time of all threads for each, or 0. */
static double send(int to, int from, int count)
{
	const double begin = cpu_ns();
	char byte = 'b';

	for (int i = 0; i < count; i++)
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			return 0;
	return (cpu_ns() - begin) / count;
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

/* Each thread ends when nobody can send to it any more. */
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
	struct circle c = { .pipe_count = 0 };
	struct seat seats[THREADS];
	double plain = 0, round = 0;

	if (open_circle(&c, seats)) {
		/* Through the last pipe, which nobody but this thread reads. */
		plain = send(c.pipes[THREADS][1], c.pipes[THREADS][0], PLAIN);
		/* The first round touches all stacks. */
		if (send(c.pipes[0][1], c.pipes[THREADS][0], 1) > 0)
			round = send(c.pipes[0][1], c.pipes[THREADS][0], ROUNDS);
	}
	close_circle(&c);
	return plain > 0 && round / (THREADS + 1) > plain ? round / (THREADS + 1) - plain : 0;
}
