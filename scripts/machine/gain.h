/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_GAIN_H
#define MACHINE_GAIN_H

/*
 * scripts/machine/gain.h - estimates how much CPU time a process can save at most with fibers.
 *
 * Fibers save only CPU time that the kernel spends for the process. Two upper bounds are computed:
 *
 *	by system	the share of the CPU time that the process spent in the kernel.  The kernel
 *			samples this share at each tick, so twice its standard error is added
 *	by waits	the number of waits, times twice the cost of a wait on this machine
 *			(wait_cost.h), as a share of the CPU time.  Twice, because the cost is measured
 *			on threads that do nothing else: in the figures of scripts/bench a server with
 *			1,000 connections saves 1.6 times as much
 *
 * The smaller bound counts.  Waits in event loops (epoll_wait) are left out, because fibers do not save them.
 * Waits of threads that ended between the two looks (look.h) are not known; if such threads used much CPU
 * time, only "by system" counts.
 */

#include "look.h"

struct gain {
	double at_most;			/* share of its CPU time, 0 to 1 */
	double cpu;			/* CPU time per second: the average share of one CPU */
	bool by_system;			/* at_most is the bound by system; otherwise by waits */
	bool short_threads;		/* threads that ended between the looks used much CPU time */
};

/* If at_most or cpu is less, the gain is not worth a restart of the process. */
#define GAIN_LEAST 0.05			/* for at_most */
#define GAIN_IDLE 0.005			/* for cpu */

/* The cost of a wait in ns if it cannot be measured: twice what was measured on an idle machine. */
#define WAIT_ASSUMED_NS 10000.0

struct gain gain_estimate(const struct activity *a, double wait_ns);

#endif
