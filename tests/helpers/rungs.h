/* SPDX-License-Identifier: MIT */
#ifndef RUNGS_H
#define RUNGS_H

/*
 * tests/helpers/rungs.h - what all_rungs.c and odd_rungs.c, and their parts, share: threads that may be refused, events
 * and pipes.
 */

#include "check.h"

enum { TRIES = 20, REFUSED = 11 };

UNUSED static struct event ready = EVENT_INIT, turn = EVENT_INIT;
static int first[2], second[2];

static int is_refused(int err)
{
	static int refused;

	if (!err)
		return 0;
	CHECK_INT(err, EAGAIN);
	if (write(2, "EAGAIN\n", 7) < 0 || __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED) > TRIES)
		_exit(REFUSED);
	usleep(1000);
	return 1;
}

static pthread_t begin_as(const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	while (is_refused(pthread_create(&t, attr, fn, arg)))
		continue;
	return t;
}

static pthread_t begin(void *(*fn)(void *), void *arg)
{
	return begin_as(NULL, fn, arg);
}

#endif
