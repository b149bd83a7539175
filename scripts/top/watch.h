/* SPDX-License-Identifier: MIT */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

/*
 * scripts/top/watch.h - watches a process: keeps the last picture (all that was read of the process
 * at one time), the picture before, and samples of the processors in between.
 *
 * The process does nothing for this: its memory is read by the code of "fiberize ps" and "fiberize stat".
 */

#include <signal.h>

#include "processors.h"
#include "scripts/counters/counts.h"
#include "scripts/inspect/fibers.h"

/* How many threads wait for one kind of thing. */
struct kind {
	const char *name;		/* as in "fiberize ps" */
	unsigned waits_for;		/* enum fz_waits_for; all kinds of requests have one value */
	size_t threads;
	double longest;			/* seconds; below 0: unknown */
};

enum { KINDS_MOST = 64 };

/* How active a thread was since the picture before, per second. */
struct heat {
	double cpu, switches;		/* cpu: 1 is a whole CPU */
};

struct picture {
	double at;			/* seconds of CLOCK_MONOTONIC */
	struct counts counts;
	struct fibers all;
	struct heat *heat;		/* one for each of all.list */
	const char **kinds;		/* for each of all.list: the kind of its wait */
	char **details;			/* for each of all.list: watch_detail(), or NULL if not asked yet */
	size_t states[STATE_COUNT];	/* how many threads are in each state */
	struct kind waits[KINDS_MOST];
	size_t wait_count;
	double cpu;			/* CPU time of the process, seconds */
	double resident;		/* memory, bytes */
};

struct watch {
	struct counts_source source;
	const struct target *target;
	struct picture pictures[2];
	struct picture *now, *before;	/* before: NULL in the first picture */
	struct processors processors;	/* samples between before and now */
	struct processors looking;	/* samples since now, for the next picture */
	double seconds;			/* from before to now; 0: there is no before */
	const char *end;		/* why the process can no longer be read; NULL: it can */
};

/*
 * Open the process. Ends the tool with a message if that is impossible. Returns false, after a message, if the
 * library is dormant.
 */
bool watch_open(struct watch *w, const char *pid);

/* Take a picture. Returns false if the process has ended: then w->end tells why, and the last picture stays. */
bool watch_take(struct watch *w);

enum wait_end {
	WAIT_TIME,			/* the time is over */
	WAIT_INPUT,			/* fd can be read */
	WAIT_SIGNAL,			/* a handler has run */
};

/*
 * What the thread waits for in words, as in "fiberize ps".  It is read only once for each picture, so the
 * last picture keeps it when the process has ended.
 */
const char *watch_detail(const struct watch *w, size_t thread);

double watch_time(void);		/* seconds of CLOCK_MONOTONIC */

/*
 * Wait until the time `until` (in watch_time(); may be INFINITY), or until fd (-1: none) can be read, or a
 * signal arrives; mask is the signal mask meanwhile.  If looks, sample the processors meanwhile.  The end of
 * the process ends the wait as WAIT_TIME, once: not if w->end is set.
 */
enum wait_end watch_wait(struct watch *w, double until, bool looks, int fd, const sigset_t *mask);

/* How fast a counter grows, per second, from its values now and before; 0 in the first picture. */
double watch_rate(const struct watch *w, uint64_t now, uint64_t before);
double watch_sum_rate(const struct watch *w, enum fz_processor_counter which);
double watch_total_rate(const struct watch *w, enum fz_total which);

/* The counts of the same function in the picture before; NULL: there are none. */
const struct call_counts *watch_call_before(const struct watch *w, const struct call_counts *call);

#endif
