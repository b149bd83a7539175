/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_RULES_H
#define FZ_PRELOAD_STUB_RULES_H

/*
 * preload/stub/rules.h - what the profiles in /etc/fiberize say about a program into which the stub is
 * loaded (fiberize(1), FILES). runtime/base/profile.h reads the lines of a profile. The launcher reports
 * errors in them; the stub ignores wrong lines, and files to which others than root may write.
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
	const char *arguments;		/* the program's arguments, separated by one blank each */
	enum fz_verdict verdict;
	/*
	 * For each enum fz_option_id the text FIBERIZE_NAME=VALUE of the first profile that sets the option, or
	 * NULL.
	 */
	char *variables[FZ_OPTION_COUNT];
	struct fz_text_buffer text;	/* the memory for `variables` */
};

/* Does /etc/fiberize/disable exist? It switches fibers off for all programs. */
bool fz_rules_all_off(void);

/* Read the profiles. The caller has set path, arguments and text; this sets verdict and variables. */
void fz_rules_read(struct fz_rules *r);

#endif
