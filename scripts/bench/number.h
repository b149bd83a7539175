/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_NUMBER_H
#define FZ_BENCH_NUMBER_H

/*
 * scripts/bench/number.h - reads a number from the command line, and the clock.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * Convert text to a number. Ends the program with status 2 unless text is a number from min to
 * max.
 */
static inline double to_number(const char *text, const char *what, double min, double max)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= min && v <= max)) {
		fprintf(stderr, "%s: %s %s: must be a number from %g to %g\n",
			program_invocation_short_name, what, text, min, max);
		exit(2);
	}
	return v;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#endif
