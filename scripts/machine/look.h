/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_LOOK_H
#define MACHINE_LOOK_H

/*
 * scripts/machine/look.h - what the threads of a process do between two moments, read from /proc only, so
 * that the process is not disturbed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processes.h"

struct look_thread {
	int tid;
	uint64_t cpu_ns;
	uint64_t waits, preempted;	/* voluntary and involuntary context switches */
	bool loops, elsewhere;		/* was seen asleep in a call of an event loop; in another call */
};

/* The state of one process at one moment. */
struct look {
	int pid;
	struct process_state state, after;	/* before and after its threads were read */
	double time, time_after;	/* of state and after, seconds of CLOCK_MONOTONIC */
	struct look_thread *threads;	/* sorted by tid */
	size_t count;
};

/* What a process did between two looks. */
struct activity {
	double seconds;
	double cpu, system;		/* CPU time of all threads, in total and in the kernel; seconds */
	double unseen_cpu;		/* threads that ended between the looks used at least so much; seconds */
	uint64_t ticks;			/* the kernel's samples of user and system time */
	uint64_t waits, preempted;	/* waits and preemptions; waits of event loops are left out */
	size_t threads, loops, cpu_bound;
};

/* Take a look at each process. Returns an array of *ret_count looks; looks_free() frees it. */
struct look *looks_take(size_t *ret_count);
/* Note where the threads of these processes sleep now. Call it several times between two looks. */
void looks_sample(struct look *looks, size_t count);
void looks_free(struct look *looks, size_t count);

/* Find among looks the one at the process of other, or NULL. */
const struct look *looks_find(const struct look *looks, size_t count, const struct look *other);

void activity_between(const struct look *first, const struct look *second, struct activity *ret);

#endif
