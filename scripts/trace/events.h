/* SPDX-License-Identifier: MIT */
#ifndef TRACE_EVENTS_H
#define TRACE_EVENTS_H

/*
 * scripts/trace/events.h - reads the events that a traced process writes (runtime/sched/trace.h), and
 * sorts them by time.
 */

#include "scripts/process/target.h"

struct event {
	double time;			/* seconds since events_begin() */
	int processor;			/* -1: none */
	int tid, other, fd;
	unsigned kind, what, how, opcode;
	uint64_t caller, site, fiber;
};

struct events;

/*
 * Begin to trace, after target_hold().  Times of events count from `origin` (in cycles(); 0: from now).  If
 * this tool is killed, the process stops writing events after `permission` seconds.  Returns NULL if the
 * program is gone.  The first call takes 20 ms.
 */
struct events *events_begin(const struct target *t, uint64_t origin, double permission);

/* The time 0 of events, in cycles(). */
uint64_t events_origin(const struct events *e);

/*
 * Read new events, and call `each` for events in the order of time.  The newest events are held back, as
 * an earlier one may still come; with `all`, none are held back.  Also renews the process's permission to
 * write events.  Returns false if the program is gone.
 */
bool events_read(struct events *e, bool all, void (*each)(const struct event *, void *), void *arg);

/* Seconds since events_begin(). */
double events_time(const struct events *e);

/* How many events were lost: they were overwritten before they were read, or there was no memory for them. */
uint64_t events_lost(const struct events *e);

/*
 * For how many seconds, before the program ended or executed another one, events could not be read; 0: the
 * program is still there.  There may have been no events in that time.
 */
double events_unread(const struct events *e);

/* Make the process stop writing events, unless another tool traces it. */
void events_stop(struct events *e);
void events_free(struct events *e);

#endif
