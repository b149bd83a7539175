/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_TEXT_H
#define PROCESS_TEXT_H

/*
 * scripts/process/text.h - makes texts from another process safe to print: names of threads, files and
 * functions.  They may contain any bytes, but must not control the terminal or break the output's format.
 */

#include <stdint.h>

/* Replace each byte by '?' that is part of a control character or not part of valid UTF-8. */
void text_clean(char *text);

/* What follows a noun after this number: "" or "s". */
static inline const char *text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
