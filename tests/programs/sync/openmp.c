/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/openmp.c - a library that makes threads, and synchronises them by
 * spinning and by system calls of its own, next to threads that do not.
 */
#include "check.h"

#include <omp.h>

enum { MASTERS = 6, TALKERS = 6, ITEMS = 500, EXCHANGES = 300 };

static long sum_of_squares(int rounds)
{
	long total = 0;

	for (int r = 0; r < rounds; r++) {
#pragma omp parallel for reduction(+ : total) schedule(dynamic, 16)
		for (int i = 0; i < ITEMS; i++)
			total += (long)i * i;
	}
	return total;
}

static long expected(int rounds)
{
	return (long)rounds * (ITEMS - 1) * ITEMS * (2 * ITEMS - 1) / 6;
}

static __thread int mine = 3;

/* Barriers, criticals, single, tasks, thread-local variables of workers. */
static void constructs(void)
{
	int threads = 0, singles = 0, tasks = 0, wrong = 0;

#pragma omp parallel num_threads(3)
	{
		if (mine != 3)
#pragma omp atomic
			wrong++;
		for (int i = 0; i < 20; i++) {
#pragma omp critical
			threads++;
#pragma omp barrier
			if (threads != 3 * (i + 1))
#pragma omp atomic
				wrong++;
#pragma omp barrier
		}
#pragma omp single
		{
			singles++;
			for (int i = 0; i < 50; i++)
#pragma omp task
#pragma omp atomic
				tasks++;
		}
	}
	CHECK_INT(wrong, 0);
	CHECK_INT(threads, 60);
	CHECK_INT(singles, 1);
	CHECK_INT(tasks, 50);
}

static void *master(void *arg)
{
	CHECK_INT(sum_of_squares(20), expected(20));
	constructs();
	return arg;
}

static int pipes[TALKERS][2][2];

static void *echo(void *arg)
{
	int (*p)[2] = arg;
	char c;

	for (int i = 0; i < EXCHANGES; i++) {
		CHECK_INT(read(p[0][0], &c, 1), 1);
		CHECK_INT(write(p[1][1], &c, 1), 1);
	}
	return NULL;
}

static void *talk(void *arg)
{
	int (*p)[2] = arg;
	char c = 'a';

	for (int i = 0; i < EXCHANGES; i++) {
		CHECK_INT(write(p[0][1], &c, 1), 1);
		CHECK_INT(read(p[1][0], &c, 1), 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t masters[MASTERS], talkers[TALKERS], echoes[TALKERS];

	/* Before any thread of the program's own, next to them, and after that. */
	CHECK_INT(sum_of_squares(20), expected(20));
	for (int i = 0; i < TALKERS; i++) {
		CHECK_OK(pipe(pipes[i][0]));
		CHECK_OK(pipe(pipes[i][1]));
		talkers[i] = start(talk, pipes[i]);
		echoes[i] = start(echo, pipes[i]);
	}
	for (int i = 0; i < MASTERS; i++)
		masters[i] = start(master, NULL);
	constructs();
	for (int i = 0; i < MASTERS; i++)
		finish(masters[i]);
	for (int i = 0; i < TALKERS; i++) {
		finish(talkers[i]);
		finish(echoes[i]);
	}
	CHECK_INT(sum_of_squares(20), expected(20));
	return success();
}
