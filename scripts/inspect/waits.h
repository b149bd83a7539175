/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_WAITS_H
#define INSPECT_WAITS_H

/*
 * scripts/inspect/waits.h - what a parked thread waits for: the words for it, and the thread that
 * holds it up.
 */

#include "fibers.h"

struct wait {
	const char *kind;		/* "read", "mutex", "join" ... */
	int fd;				/* -1: none */
	int owner;			/* the tid of the thread that it waits for; 0: unknown or none */
	char text[256];			/* all of it, for people */
};

void wait_of(const struct target *t, const struct fibers *all, const struct fiber *f,
	     struct wait *ret_wait);

/* What the open file is: its path, or the two addresses of a socket.  Cut to size. */
void file_of(const struct target *t, int fd, char *text, size_t size);

#endif
