/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_PATTERN_H
#define FZ_RUNTIME_BASE_PATTERN_H

/*
 * runtime/base/pattern.h - texts matched by patterns in which * stands for any characters.  The
 * launcher, the stub and the library use it.  The functions read only their arguments: any context.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * The pattern, which is not empty and ends before `end`, begins with a part that stands for one character.
 * If that part matches c, returns the length of the part; otherwise 0.
 */
typedef size_t fz_takes(const char *pattern, const char *end, char c);

/* ? stands for any character, and any other character for itself. */
fz_takes fz_pattern_takes;

/*
 * Reads patterns as fnmatch(3) does in the C locale, with brackets and backslashes.  Not by libc's fnmatch(), which
 * needs exponential time for stars, and which preload/stub cannot call.
 */
fz_takes fz_pattern_takes_shell;

/* Does the shell pattern consist of wildcards and slashes alone? */
bool fz_pattern_is_wild(const char *pattern);

/*
 * Does the pattern, which ends before end, match the whole text?  After a mismatch only the last star is tried with
 * one more character.  So the time is at most the product of the two lengths, times the length of the longest bracket
 * expression.
 */
bool fz_pattern_matches(const char *pattern, const char *end, const char *text, fz_takes *takes);

/*
 * Does a pattern of the list match the text?  Commas separate the patterns.  of_files: only patterns that
 * begin with an @ count, without the @; otherwise only patterns that do not.
 */
bool fz_pattern_in_list(const char *list, bool of_files, const char *text);

#endif
