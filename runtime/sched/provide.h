/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_PROVIDE_H
#define FZ_RUNTIME_SCHED_PROVIDE_H

/*
 * runtime/sched/provide.h - processors get carriers that run them.  By the monitor alone.
 */

#include "runtime/base/time.h"
#include "runtime/sched/sched.h"

/* fz_processor_take(), and remember for fz_provide_if_lacking() whether it has failed. */
bool fz_provide_carrier_for(struct fz_processor *p, uintptr_t owner);

/* Give a processor without a carrier to an idle one, for the global queue.  False: try again. */
bool fz_provide_carrier(void);

/*
 * Call at each tick: if carriers are lacking for long, CPU-bound fibers, and fibers in a call,
 * let others run.  tick: the time from one call to the next, ns.
 */
void fz_provide_if_lacking(fz_nsec tick);

void fz_provide_after_fork(void);

#endif
