/* SPDX-License-Identifier: MIT */
#ifndef TRACE_EVENTS_H
#define TRACE_EVENTS_H

/*
 * scripts/trace/events.h - the events that a traced process writes (runtime/sched/trace.h), in
 * the order of time.
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
 * Begin to trace, after target_hold(); times count from `origin`, in cycles(), or with 0 from now.  The
 * process may write events for that many seconds when this tool does not run any more.  NULL: the program
 * is gone.  The first call takes 20 ms.
 */
struct events *events_begin(const struct target *t, uint64_t origin, double permission);

/* When times begin; in cycles(). */
uint64_t events_origin(const struct events *e);

/*
 * Read new events, and call `each` for every event that is older than any that may still come; with
 * `all`, for every event.  Also renews the process's permission to write events.  False: the program is gone.
 */
bool events_read(struct events *e, bool all, void (*each)(const struct event *, void *), void *arg);

/* Seconds since events_begin(). */
double events_time(const struct events *e);

/* How many events were lost: overwritten before they were read, or no memory for them. */
uint64_t events_lost(const struct events *e);

/*
 * The events of how many last seconds could not be read, because the program has ended or executed
 * another one?  There may have been none.
 */
double events_unread(const struct events *e);

/* The process writes no more events for this tool. */
void events_stop(struct events *e);
void events_free(struct events *e);

#endif
