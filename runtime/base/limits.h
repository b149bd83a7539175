/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_LIMITS_H
#define FZ_RUNTIME_BASE_LIMITS_H

/*
 * runtime/base/limits.h - does a limit on memory (RLIMIT_AS, RLIMIT_DATA) leave room for the library?
 * The program's own needs come first.
 */

#include <stdbool.h>
#include <stddef.h>

/* Is there a limit that counts mapped memory, used or not (RLIMIT_AS, RLIMIT_DATA)? */
bool fz_limits_count_address_space(void);

/* Say text at the first call, if fz_limits_told is set (FIBERIZE_VERBOSE). */
void fz_limits_tell(const char *text);
extern bool fz_limits_told;

/* Do RLIMIT_AS and RLIMIT_DATA leave room for size bytes?  Tries a mapping if one of them is set. */
bool fz_limits_allow_memory(size_t size);

#endif
