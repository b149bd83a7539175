/* SPDX-License-Identifier: MIT */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

/*
 * scripts/top/watch.h - a process that is looked at again and again: the last picture of it, the
 * one before, and how often it was looked at in between.
 *
 * All is read from outside, by the readers of "fiberize ps" and "fiberize stat".
 */

#include <signal.h>

#include "processors.h"
#include "scripts/counters/counts.h"
#include "scripts/inspect/fibers.h"

/* Threads that wait for the same kind of thing. */
struct kind {
	const char *name;		/* as in "fiberize ps" */
	unsigned waits_for;		/* a value of for_*: several names of requests have one */
	size_t threads;
	double longest;			/* seconds; below 0: unknown */
};

enum { KINDS_MOST = 64 };

/* What a thread has done since the picture before, per second. */
struct heat {
	double cpu, switches;		/* cpu: 1 is a whole CPU */
};

struct picture {
	double at;			/* seconds of CLOCK_MONOTONIC */
	struct counts counts;
	struct fibers all;
	struct heat *heat;		/* of all.list, one each */
	const char **kinds;		/* of all.list: what each waits for */
	char **details;			/* of all.list: watch_detail() fills them in */
	size_t states[STATE_COUNT];	/* how many threads */
	struct kind waits[KINDS_MOST];
	size_t wait_count;
	double cpu;			/* seconds, of the process */
	double resident;		/* bytes */
};

struct watch {
	struct counts_source source;
	const struct target *target;
	struct picture pictures[2];
	struct picture *now, *before;	/* before: NULL in the first picture */
	struct processors processors;	/* since the picture before */
	struct processors looking;	/* since this picture */
	double seconds;			/* between the pictures; 0: there is one only */
	const char *end;		/* why there are no more pictures; NULL: it goes on */
};

/* Ends the tool as ps does; false: the library is dormant, which it says. */
bool watch_open(struct watch *w, const char *pid);

/* Take a picture; false: the process has ended, w->end says how, and the last picture stays. */
bool watch_take(struct watch *w);

enum wait_end {
	WAIT_TIME,			/* it is time */
	WAIT_INPUT,			/* fd can be read */
	WAIT_SIGNAL,			/* a handler has run */
};

/*
 * What the thread waits for in words, as in "fiberize ps".  It is read once for a picture, so that the
 * last picture of a process has what was shown of it.
 */
const char *watch_detail(const struct watch *w, size_t thread);

double watch_time(void);		/* seconds of CLOCK_MONOTONIC */

/*
 * Wait, with the signals of mask blocked, until that time, which may be INFINITY, and look at the
 * processors meanwhile if looks.  The end of the process is WAIT_TIME, unless w->end tells of it.
 * fd: -1: none.
 */
enum wait_end watch_wait(struct watch *w, double until, bool looks, int fd, const sigset_t *mask);

/* Per second, of a number that grows; 0 in the first picture. */
double watch_rate(const struct watch *w, uint64_t now, uint64_t before);
double watch_sum_rate(const struct watch *w, enum fz_processor_counter which);
double watch_total_rate(const struct watch *w, enum fz_total which);

/* The row of the function in the picture before; NULL: none. */
const struct call_counts *watch_call_before(const struct watch *w, const struct call_counts *call);

#endif
