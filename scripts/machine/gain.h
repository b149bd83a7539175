/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_GAIN_H
#define MACHINE_GAIN_H

/*
 * scripts/machine/gain.h - how much of its CPU time a process can save at most, as fibers.
 *
 * The program's own code stays, so nothing is saved but time that the kernel has spent for it:
 *
 *	by system	the share of its CPU time that the kernel has counted as its own, and twice the
 *			standard error of that share, which comes from samples, one each tick
 *	by waits	for each wait, twice what a wait costs on this machine (wait_cost.h), of its CPU
 *			time.  Twice, because that cost is measured on threads that do nothing else: in the
 *			figures of scripts/bench a server with 1,000 connections saves 1.6 times as much
 *
 * The smaller one holds.  Waits in epoll_wait are not counted, since event loops have no fibers to switch
 * to; nor are those of threads that came and went between the two looks, so that "by system" alone holds
 * if those used CPU time worth mention.
 */

#include "look.h"

struct gain {
	double at_most;			/* share of its CPU time, 0 to 1 */
	double cpu;			/* of a processor, on average */
	bool by_system;			/* this bound holds; otherwise by waits */
	bool short_threads;		/* threads come and go */
};

/* Below these, a gain is not worth a restart. */
#define GAIN_LEAST 0.05			/* share of its CPU time */
#define GAIN_IDLE 0.005			/* of a processor */

/* What a wait is taken to cost where it cannot be measured: twice what an idle machine has shown. */
#define WAIT_ASSUMED_NS 10000.0

struct gain gain_estimate(const struct activity *a, double wait_ns);

#endif
