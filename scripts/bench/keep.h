/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_KEEP_H
#define FZ_BENCH_KEEP_H

/*
 * scripts/bench/keep.h - appends lines to the file of scripts/machine/measured.h, which stays below its size.
 *
 * Root may measure with another's environment (sudo -E), so that whoever that is chooses where the file is: nothing is
 * made or written but in directories of this user, and in a regular file of this user alone; no link leads elsewhere.
 */

#include <stdbool.h>

/*
 * Append what can be read from a descriptor. False after a message, without the end of a line, that says why it was
 * not. True without doing anything if the environment names no place, or a home that does not exist.
 */
bool keep(int from);

#endif
