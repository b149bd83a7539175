/* SPDX-License-Identifier: MIT */
#ifndef CHECK_MISC_H
#define CHECK_MISC_H

/*
 * scripts/check/misc.h - finds the interpreter of a file whose format is registered with the kernel
 * (binfmt_misc). The kernel tries these formats before its built-in ones.
 */

#include <stdbool.h>

enum { START_SIZE = 256 };		/* bytes at the start of a file that the kernel compares */

struct misc {
	char *interpreter;		/* to be freed */
	bool credentials;		/* flag C: set-user-ID of the file counts, not the interpreter's */
	bool fixed;			/* flag F: the kernel opened the interpreter at registration */
};

/*
 * Find the entry that the kernel would use for the file. start holds the first START_SIZE bytes
 * of the file, padded with zeros, or is NULL if the file cannot be read.
 */
bool misc_find(const char *path, const char *start, struct misc *ret);

#endif
