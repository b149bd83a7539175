/* SPDX-License-Identifier: MIT */
#ifndef TRACE_TIMELINE_H
#define TRACE_TIMELINE_H

/*
 * scripts/trace/timeline.h - from events (events.h) to what each fiber did from when to when: it
 * ran, waited in a call, was queued.
 */

#include <stdio.h>

#include "events.h"
#include "symbols.h"

/* What became of a call. A trace knows what the call did, and so uses only USER to BRIEF, and LATE. */
enum rung {
#define FZ_RUNG(rung, word, text) RUNG_##rung,
#include "preload/rungs.def"
};
extern const char *const rung_names[];

/* A call that has blocked.  Times in seconds. */
struct call {
	int tid;
	const char *thread;		/* its name */
	const char *name;		/* of the function, or of what it waits for */
	const struct symbol *caller;
	uint64_t caller_address;	/* 0: not known yet */
	int fd;				/* -1: none or several */
	enum rung rung;
	double begun, waited;
	double queued;			/* after the wait, until it ran */
};

/* What a fiber or a processor did from `begun` to `ended`. */
struct slice {
	enum { SLICE_RUNS, SLICE_QUEUED, SLICE_WAITS } kind;
	int tid, processor;		/* processor -1: none */
	const char *thread;
	double begun, ended;
	const struct call *call;	/* of SLICE_WAITS; or NULL */
	bool is_first;			/* of this thread */
};

struct timeline_user {
	void (*call)(const struct call *, void *);	/* it is over */
	void (*slice)(const struct slice *, void *);	/* may be NULL */
	void *arg;
};

struct timeline;

struct timeline *timeline_new(const struct target *t, struct symbols *s,
			      const struct timeline_user *user);

/* Add an event; of events_read(). */
void timeline_event(const struct event *event, void *timeline);

/* End all slices. */
void timeline_end(struct timeline *l, double now);
void timeline_free(struct timeline *l);

#endif
