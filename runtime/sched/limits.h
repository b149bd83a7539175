/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_LIMITS_H
#define FZ_RUNTIME_SCHED_LIMITS_H

/*
 * runtime/sched/limits.h - what narrow limits on processes and on memory leave for us: what the
 * program needs comes first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many of count processors can be had so that there are, besides the main thread,
 * the two helpers of runtime/sched/sched.c, a carrier for each, one more kernel thread for a
 * moment, which each new thread needs, and some for processes that it makes.  It is
 * tried, where the limit looks narrow, with as many kernel threads that do nothing.  May
 * be 0.  Before there are any of ours; they are gone from this process, but may be
 * counted for a moment longer: ret_narrow.
 */
uint32_t fz_limits_allow_processors(uint32_t count, bool *ret_narrow);

/* Does a limit count what is mapped and not used (RLIMIT_AS, RLIMIT_DATA)? */
bool fz_limits_count_address_space(void);

/* Say that, once, to who wants to know. */
void fz_limits_tell(const char *text);
extern bool fz_limits_told;

/* Is that much left by such a limit, if there is one? */
bool fz_limits_allow_memory(size_t size);

#endif
