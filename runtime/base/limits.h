/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_LIMITS_H
#define FZ_RUNTIME_BASE_LIMITS_H

/*
 * runtime/base/limits.h - what narrow limits on memory leave for us: what the program needs
 * comes first.
 */

#include <stdbool.h>
#include <stddef.h>

/* Does a limit count what is mapped and not used (RLIMIT_AS, RLIMIT_DATA)? */
bool fz_limits_count_address_space(void);

/* Say that, once, to who wants to know. */
void fz_limits_tell(const char *text);
extern bool fz_limits_told;

/* Is that much left by such a limit, if there is one? */
bool fz_limits_allow_memory(size_t size);

#endif
