/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_PROGRAMS_STATUS_H
#define FZ_TESTS_PROGRAMS_STATUS_H

/*
 * tests/programs/status.h - what the kernel says of the process's memory.
 */

#include "check.h"

/* A number of kB from /proc/self/status. */
static inline long status_kb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = atol(line + strlen(name));
	fclose(f);
	CHECK(kb >= 0);
	return kb;
}

#endif
