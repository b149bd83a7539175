/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_TEXT_H
#define PROCESS_TEXT_H

/*
 * scripts/process/text.h - makes texts from another process safe to print: names of threads, files and
 * functions.  They may contain any bytes, but must not control the terminal or break the output's format.
 */

/* Replace each byte by '?' that is part of a control character or not part of valid UTF-8. */
void text_clean(char *text);

/*
 * The width to give to printf's "%-*s" so that this text, after text_clean(), fills so many columns: printf counts
 * bytes, and a character of another script may have three bytes and take one column, or two.
 */
int text_field(const char *text, int columns);

#endif
