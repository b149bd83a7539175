/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_LOOK_H
#define MACHINE_LOOK_H

/*
 * scripts/machine/look.h - what the threads of a process do between two moments, from /proc alone: the
 * process notices nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processes.h"

struct look_thread {
	int tid;
	uint64_t cpu_ns;
	uint64_t waits, preempted;	/* voluntary and involuntary context switches */
	bool loops, elsewhere;		/* was seen asleep in a call of an event loop, in another place */
};

/* One moment of one process. */
struct look {
	int pid;
	struct process_state state, after;	/* before its threads were looked at, and then */
	double time, time_after;	/* of that, seconds */
	struct look_thread *threads;	/* sorted by tid */
	size_t count;
};

/* What has happened between two of them. */
struct activity {
	double seconds;
	double cpu, system;		/* seconds of all threads */
	double unseen_cpu;		/* at least so many seconds of threads that were not there at both ends */
	uint64_t ticks;			/* by which the kernel has counted cpu and system */
	uint64_t waits, preempted;	/* waits of event loops are not counted */
	size_t threads, loops, cpu_bound;
};

/* Look at each process; returns an array of *ret_count, for looks_free(). */
struct look *looks_take(size_t *ret_count);
/* See where the threads of these processes sleep; as often as one likes, before activity_between(). */
void looks_sample(struct look *looks, size_t count);
void looks_free(struct look *looks, size_t count);

/* The look at the same process, or NULL. */
const struct look *looks_find(const struct look *looks, size_t count, const struct look *other);

void activity_between(const struct look *first, const struct look *second, struct activity *ret);

#endif
