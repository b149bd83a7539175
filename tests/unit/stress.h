/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_STRESS_H
#define FZ_TESTS_UNIT_STRESS_H

/*
 * tests/unit/stress.h - what the programs have in common that race parts of the
 * runtime by kernel threads alone: STRESS [ROUNDS].  Each has one main() in one file.
 */

#include <stdio.h>
#include <stdlib.h>

#include "runtime_setup.h"

enum { THREADS = 4 };

static unsigned rounds;
static unsigned failed;

static void check(const char *what, bool ok)
{
	printf("%s %s%s\n", ok ? "PASS" : "FAIL", what, ok ? "" : ": races");
	failed += !ok;
}

/* fn(0), fn(1) ... by so many threads at once; all of them have returned NULL. */
static bool run(void *(*fn)(void *))
{
	pthread_t threads[THREADS];
	bool ok = true;
	void *error;

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = native(fn, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &error);
		ok &= error == NULL;
	}
	return ok;
}

static void begin(int argc, char **argv, unsigned default_rounds)
{
	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : default_rounds;
	setup_layout();
}

/* The exit status. */
static int end(void)
{
	return failed != 0;
}

#endif
