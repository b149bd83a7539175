/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_ASLEEP_H
#define INSPECT_ASLEEP_H

/*
 * scripts/inspect/asleep.h - for how long kernel threads have slept: the least that the time of a call can be in
 * which a thread waits in the kernel.  The library notes no time for such a call; the scheduler of the kernel does
 * (/proc/PID/task/TID/sched).
 */

#include "fibers.h"

struct sleeper;

struct sleepers {
	struct sleeper *list;
	size_t count;
};

/*
 * Note which threads of a live process, other than the library's, sleep in the kernel, and when they last ran.
 * all->list must stay where it is.
 */
void sleepers_read(const struct target *t, struct fibers *all, struct sleepers *ret_sleepers);

/*
 * Fill in waits_at_least of these threads; once in the life of the tool.  A thread of the tool runs on each CPU that
 * one of them has last run on, because the clocks of the kernel's schedulers differ from CPU to CPU.  The process need
 * not be stopped meanwhile.
 */
void sleepers_tell(const struct sleepers *sleepers);
void sleepers_free(struct sleepers *sleepers);

#endif
