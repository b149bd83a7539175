/* SPDX-License-Identifier: MIT */
#ifndef NO_NUMBERS_H
#define NO_NUMBERS_H

/*
 * tests/unit/no_numbers.h - let the process have no descriptor number free, for a while: the test's own reports need
 * some.
 */

#include <criterion/criterion.h>

#include <sys/resource.h>
#include <unistd.h>

enum { NUMBERS = 200 };

/* Takes all numbers; the limit cannot be raised.  Returns the lowest number that it has taken. */
static inline int take_numbers(void)
{
	const struct rlimit limit = { NUMBERS, NUMBERS };
	const int lowest = dup(0);

	cr_assert_geq(lowest, 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(0) >= 0)
		continue;
	return lowest;
}

static inline void give_numbers_back(int lowest)
{
	for (int fd = lowest; fd < NUMBERS; fd++)
		close(fd);
}

#endif
