/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_LIMITS_H
#define FZ_RUNTIME_BASE_LIMITS_H

/*
 * runtime/base/limits.h - how much memory a narrow limit leaves for the library; the program's
 * own needs come first.
 */

#include <stdbool.h>
#include <stddef.h>

/* Is there a limit that counts mapped memory, used or not (RLIMIT_AS, RLIMIT_DATA)? */
bool fz_limits_count_address_space(void);

/* Say text at the first call, if fz_limits_told is set (FIBERIZE_VERBOSE). */
void fz_limits_tell(const char *text);
extern bool fz_limits_told;

/* Does such a limit, if there is one, leave size bytes? */
bool fz_limits_allow_memory(size_t size);

#endif
