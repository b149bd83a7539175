/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_TEXT_H
#define PROCESS_TEXT_H

/*
 * scripts/process/text.h - texts that another process chose: names of threads, files and functions.  They
 * have any bytes, but must not move the cursor of a terminal, nor make unreadable what programs read.
 */

/* Replace by '?' each byte of a control character, and each that is no part of a character in UTF-8. */
void text_clean(char *text);

#endif
