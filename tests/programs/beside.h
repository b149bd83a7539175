/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/beside.h - threads beside others that come and go: who keeps something in a kernel thread
 * must not lose it to them, nor they get it.
 */
#ifndef BESIDE_H
#define BESIDE_H

#include "check.h"

enum { OTHERS = 12, ROUNDS = 60 };

static void *sleeps(void *arg)
{
	for (int i = 0; i < 2 * ROUNDS; i++)
		usleep(50);
	return arg;
}

/* Several threads with fn, and as many that only sleep. */
static void beside_sleepers(void *(*fn)(void *))
{
	pthread_t threads[OTHERS];

	for (int k = 0; k < OTHERS; k++)
		threads[k] = start(k % 2 ? sleeps : fn, NULL);
	for (int k = 0; k < OTHERS; k++)
		finish(threads[k]);
}

#endif
