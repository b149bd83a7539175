/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_PROVIDE_H
#define FZ_RUNTIME_SCHED_PROVIDE_H

/*
 * runtime/sched/provide.h - gives carriers to processors, and opens and closes processors.
 *
 * A processor that needs a carrier gets an idle one; the spawner makes new ones (spawner.h).  As
 * many processors are open as the load needs, and never more than the process may use CPUs.  All
 * functions are for the monitor alone, unless said otherwise.
 */

#include "runtime/base/time.h"
#include "runtime/sched/sched.h"

/* fz_processor_take(); fz_provide_if_lacking() takes a failure into account. */
bool fz_provide_carrier_for(struct fz_processor *p, uintptr_t owner);

/*
 * Give an open processor that no carrier runs to an idle carrier, so that it serves the global
 * queue.  Returns false if no carrier is idle: call it again later.
 */
bool fz_provide_carrier(void);

/*
 * Call at each tick.  If processors have needed carriers for long and there are none, this preempts
 * CPU-bound fibers and fibers in a call, and lets a carrier that waits in the kernel serve another
 * processor.  tick: the time between two calls, ns.  Returns the processor at which the monitor's
 * next look must begin: if only one carrier is idle, the first processor that needs a carrier gets
 * it.
 */
uint32_t fz_provide_if_lacking(fz_nsec tick);

/*
 * By the thread that has started the runtime, before there is a second fiber: close all processors
 * but the first `open`, and follow the CPU limit from now on (runtime/base/cpus.h).  open == 0: all
 * stay open, and no limit is followed.
 */
void fz_provide_begin(uint32_t open);

/*
 * Close all processors but the first `open`, at least one; fz_provide_by_load() may open others, up to
 * fz_sched.allowed.  Any thread in the runtime.
 */
void fz_provide_open(uint32_t open);

/*
 * Call after each look at the processors: open as many processors as the load needs.  ticks: the ticks planned
 * from the look before to this one.  Where fibers run for some microseconds at a time, few processors are best:
 * waiting for the fiber in front costs less than waking another CPU, and the requests of fibers on one
 * processor share system calls.
 */
void fz_provide_by_load(fz_nsec now, uint32_t ticks);

/* Call at each tick: twice a second it opens or closes processors if the CPU limit has changed. */
void fz_provide_follow(fz_nsec now);

/*
 * The monitor does not read the CPU limit any more when this returns: a filter is about to be
 * installed in all threads, which may end the process for such a system call.  Any thread outside
 * the runtime.
 */
void fz_provide_stop_following(void);

void fz_provide_after_fork(void);

#endif
