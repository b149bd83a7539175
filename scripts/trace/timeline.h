/* SPDX-License-Identifier: MIT */
#ifndef TRACE_TIMELINE_H
#define TRACE_TIMELINE_H

/*
 * scripts/trace/timeline.h - turns events (events.h) into slices of time, in each of which a fiber ran,
 * waited in a call, or was queued.
 */

#include <stdio.h>

#include "events.h"
#include "symbols.h"

/* What became of a call. A trace sees how each call has blocked in fact: it uses USER to BRIEF, and LATE. */
enum rung {
#define FZ_RUNG(rung, word, text) RUNG_##rung,
#include "preload/rungs.def"
};
extern const char *const rung_names[];

/* A call that has blocked.  Times in seconds. */
struct call {
	int tid;
	const char *thread;		/* its name */
	const char *name;		/* of the function, or of the kind of wait */
	const struct symbol *caller;
	uint64_t caller_address;	/* 0: not known yet */
	int fd;				/* -1: none or several */
	enum rung rung;
	double begun, waited;
	double queued;			/* from the end of the wait until the fiber ran */
};

/* What a fiber or a processor did from `begun` to `ended`. */
struct slice {
	enum { SLICE_RUNS, SLICE_QUEUED, SLICE_WAITS } kind;
	int tid, processor;		/* processor -1: none */
	const char *thread;
	double begun, ended;
	const struct call *call;	/* the call, in SLICE_WAITS; or NULL */
	bool has_new_name;		/* the first slice of this thread, or the first since its name was read */
};

struct timeline_user {
	void (*call)(const struct call *, void *);	/* called when a call is over */
	void (*slice)(const struct slice *, void *);	/* called when a slice is over; may be NULL */
	void *arg;
};

struct timeline;

struct timeline *timeline_new(const struct target *t, struct symbols *s,
			      const struct timeline_user *user);

/* Add an event. The function has the type of `each` in events_read(). */
void timeline_event(const struct event *event, void *timeline);

/* End the slices of all threads at the time now. */
void timeline_end(struct timeline *l, double now);
void timeline_free(struct timeline *l);

#endif
