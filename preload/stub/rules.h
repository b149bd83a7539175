/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_RULES_H
#define FZ_PRELOAD_STUB_RULES_H

/*
 * preload/stub/rules.h - what the profiles in /etc/fiberize say about a program that found the
 * stub (fiberize(1), FILES). The launcher reads them by scripts/check/profiles.c, and tells what is wrong in them;
 * here a line that is wrong counts for nothing, nor does a file that others than root may write. That both read alike
 * is what tests/fuzz/rules.c checks.
 */

#include <stdbool.h>
#include <stddef.h>

#include "preload/stub/text.h"

enum fz_verdict {
	FZ_VERDICT_NONE,	/* no profile names the program */
	FZ_VERDICT_ON,
	FZ_VERDICT_OFF,
};

enum { FZ_RULES_OPTIONS = 24 };

struct fz_rules {
	const char *path;		/* the name that was executed */
	const char *file;		/* NULL; rules.c finds it when it needs it */
	const char *arguments;		/* with one blank after each, but for the last */
	enum fz_verdict verdict;
	/* Variables, FIBERIZE_NAME=VALUE: what the profiles set, the first of several. */
	char *variables[FZ_RULES_OPTIONS];
	size_t count;
	struct fz_text_buffer text;	/* where they are */
};

/* Is there a file that switches all off, /etc/fiberize/disable? */
bool fz_rules_all_off(void);

/* Read the profiles for the program whose names and arguments are set, as is the buffer. */
void fz_rules_read(struct fz_rules *r);

/* Read one of them, with room for a zero behind it; it is overwritten. By fz_rules_read(), and tests. */
void fz_rules_read_text(struct fz_rules *r, char *profile, size_t length);

#endif
