/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_SCHED_FIXTURE_H
#define FZ_TESTS_UNIT_SCHED_FIXTURE_H

/* tests/unit/sched_fixture.h - a fiber that tells that it has run, and the number of kernel threads. */

#include <dirent.h>

#include "runtime_setup.h"

static _Atomic bool flag;

static inline void *set_flag(void *arg)
{
	SET(flag, true);
	return arg;
}

static inline unsigned kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

#endif
