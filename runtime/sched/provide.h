/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_PROVIDE_H
#define FZ_RUNTIME_SCHED_PROVIDE_H

/*
 * runtime/sched/provide.h - processors get carriers that run them, and no more processors are open
 * than the process may use CPUs, and than the load needs.  By the monitor alone, unless said otherwise.
 * Carriers are made by the spawner (spawner.h).
 */

#include "runtime/base/time.h"
#include "runtime/sched/sched.h"

/* fz_processor_take(), and remember for fz_provide_if_lacking() whether it has failed. */
bool fz_provide_carrier_for(struct fz_processor *p, uintptr_t owner);

/* Give a processor without a carrier to an idle one, for the global queue.  False: try again. */
bool fz_provide_carrier(void);

/*
 * Call at each tick: if carriers are lacking for long, CPU-bound fibers, and fibers in a call,
 * let others run, and the carriers that wait in the kernel serve all processors in turn.  tick: the
 * time from one call to the next, ns.  Returns the processor at which the next look is to begin:
 * perhaps there is one idle carrier, and the first that needs one gets it.
 */
uint32_t fz_provide_if_lacking(fz_nsec tick);

/*
 * Before the second fiber, by the thread that has started the runtime: close all processors but the
 * first `open`, and follow the CPU limit from now on (runtime/base/cpus.h).  0: all stay open.
 */
void fz_provide_begin(uint32_t open);

/*
 * Close all processors but the first `open`, at least one; fz_provide_by_load() may open others, up to
 * fz_sched.allowed.  Any thread in the runtime.
 */
void fz_provide_open(uint32_t open);

/*
 * Call after each look, `ticks` after the one before, now: open as many processors as the load needs.  Where fibers
 * run for some microseconds at a time, it costs less to wait for the one before than to wake another CPU, and the
 * requests of fibers on one processor share system calls.
 */
void fz_provide_by_load(fz_nsec now, uint32_t ticks);

/* Call at each tick. */
void fz_provide_follow(fz_nsec now);

/*
 * Read nothing any more: a filter is about to be installed in all threads, which may end the process
 * for what it forbids.  Any thread outside the runtime.
 */
void fz_provide_stop_following(void);

void fz_provide_after_fork(void);

#endif
