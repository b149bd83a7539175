/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_RUNNING_H
#define MACHINE_RUNNING_H

/*
 * scripts/machine/running.h - "fiberize check --running": finds the processes that would gain by fibers.
 */

#include <stdio.h>

#include "gain.h"
#include "scripts/check/report.h"

/* A process with more than one thread. */
struct candidate {
	int pid;
	char name[16];
	char *program, *service, *command;	/* service and command may be NULL */
	struct activity activity;
	struct gain gain;
	const char *verdict;		/* as in a report, or "runs under fiberize" */
	char *reason;
	char *advice;			/* the command to type; NULL if the process would not gain */
};

struct running {
	double seconds;			/* how long the processes were watched */
	double wait_ns;			/* the cost of a wait */
	bool wait_assumed;		/* wait_ns could not be measured and is WAIT_ASSUMED_NS */
	struct backend backend;
	struct candidate *list;		/* sorted: the process that can save most comes first */
	size_t count;
	size_t single;			/* processes with one thread */
	size_t forbidden;		/* processes with several threads whose program this user may not know */
};

/* Watch all processes for this many seconds. */
void running_look(double seconds, const struct object *library, struct running *ret);
void running_text(const struct running *r, FILE *out);
void running_json(const struct running *r, FILE *out);

#endif
