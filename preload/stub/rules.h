/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_RULES_H
#define FZ_PRELOAD_STUB_RULES_H

/*
 * preload/stub/rules.h - what the profiles in /etc/fiberize say about a program that found the
 * stub (fiberize(1), FILES). runtime/base/profile.h reads their lines, for the launcher too, which tells what is wrong in
 * them; here a line that is wrong counts for nothing, nor does a file that others than root may write.
 */

#include <stdbool.h>

#include "preload/stub/text.h"
#include "runtime/base/options.h"

enum fz_verdict {
	FZ_VERDICT_NONE,	/* no profile names the program */
	FZ_VERDICT_ON,
	FZ_VERDICT_OFF,
};

struct fz_rules {
	const char *path;		/* the name that was executed */
	const char *arguments;		/* with one blank after each, but for the last */
	enum fz_verdict verdict;
	/* By enum fz_option_id: FIBERIZE_NAME=VALUE, what the first profile that sets it sets; or NULL. */
	char *variables[FZ_OPTION_COUNT];
	struct fz_text_buffer text;	/* where they are */
};

/* Is there a file that switches all off, /etc/fiberize/disable? */
bool fz_rules_all_off(void);

/* Read the profiles for the program whose names and arguments are set, as is the buffer. */
void fz_rules_read(struct fz_rules *r);

#endif
