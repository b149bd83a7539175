/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_PATTERN_H
#define FZ_RUNTIME_BASE_PATTERN_H

/*
 * runtime/base/pattern.h - texts matched by patterns in which * stands for any characters. The
 * launcher, the stub and the library use it. It reads what it is given and nothing else: any context.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * The length of the part of the pattern that stands for one character, if c is such a character;
 * or 0. The part begins before end.
 */
typedef size_t fz_takes(const char *pattern, const char *end, char c);

/* ? stands for each character, any other for itself. */
fz_takes fz_pattern_takes;

/*
 * As fnmatch(3) of libc reads patterns in the C locale, brackets and backslashes too. libc's own function needs
 * exponential time for stars, and preload/stub has none.
 */
fz_takes fz_pattern_takes_shell;

/* Is the pattern, of the shell, of wildcards and slashes alone? */
bool fz_pattern_is_wild(const char *pattern);

/*
 * Does the pattern, which ends before end, match the whole text? Only the last star takes one
 * character more where the rest does not match, so the time is at most the product of the lengths, times the length of
 * the longest bracket.
 */
bool fz_pattern_matches(const char *pattern, const char *end, const char *text, fz_takes *takes);

/*
 * Does a pattern of the list match the text? Commas separate the patterns. Of those that begin with
 * an @ only the rest counts; of_files chooses between them and the others.
 */
bool fz_pattern_in_list(const char *list, bool of_files, const char *text);

#endif
