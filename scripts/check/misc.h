/* SPDX-License-Identifier: MIT */
#ifndef CHECK_MISC_H
#define CHECK_MISC_H

/*
 * scripts/check/misc.h - the formats of programs that the kernel has been told of
 * (binfmt_misc), each with the interpreter that it starts.  They come before those that
 * it knows by itself.
 */

#include <stdbool.h>

enum { START_SIZE = 256 };		/* what of a file the kernel compares */

struct misc {
	char *interpreter;		/* to be freed */
	bool credentials;		/* C: set-user-ID and its like are the file's */
	bool fixed;			/* F: was opened when it was registered, maybe elsewhere */
};

/*
 * Which entry the kernel would take for the file of that name; start holds START_SIZE
 * bytes of it and zeros behind its end, or is NULL if they cannot be read.
 */
bool misc_find(const char *path, const char *start, struct misc *ret);

#endif
