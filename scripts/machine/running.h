/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_RUNNING_H
#define MACHINE_RUNNING_H

/*
 * scripts/machine/running.h - "fiberize check --running": which processes of this machine would gain.
 */

#include <stdio.h>

#include "gain.h"
#include "scripts/check/report.h"

/* A process with more than one thread. */
struct candidate {
	int pid;
	char name[16];
	char *program, *service, *command;	/* service and command: or NULL */
	struct activity activity;
	struct gain gain;
	const char *verdict;		/* as in a report, or "runs under fiberize" */
	char *reason;
	char *advice;			/* what to type; NULL if it would not gain */
};

struct running {
	double seconds;			/* as was asked for */
	double wait_ns;			/* what a wait costs */
	bool wait_assumed;		/* which could not be measured */
	struct candidate *list;		/* who can save most comes first */
	size_t count;
	size_t single;			/* processes with one thread */
	size_t forbidden;		/* with more than one, but this user may not know what they run */
};

/* Look at all processes for so long. */
void running_look(double seconds, const struct object *library, struct running *ret);
void running_text(const struct running *r, FILE *out);
void running_json(const struct running *r, FILE *out);

#endif
