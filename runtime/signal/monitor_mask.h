/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_MONITOR_MASK_H
#define FZ_RUNTIME_SIGNAL_MONITOR_MASK_H

/*
 * runtime/signal/monitor_mask.h - the monitor's signal mask: it takes the signals that some fiber
 * accepts, and leaves the others to the kernel, and those that are ignored there for a moment
 * (fz_signals_hidden).  Threads wait until the mask has followed a change, or until what was taken
 * has been routed.
 */

#include "runtime/base/base.h"

/*
 * Call when fz_signal_left_to_kernel() has changed.  Returns when the monitor's signal mask has
 * followed, and the monitor has routed the signals that the kernel had for it before the call: a
 * signal that no fiber accepts any more must not come to the monitor.  In the runtime, no lock held.
 * A caller that need not wait uses fz_monitor_poke() instead.
 */
void fz_monitor_follow_mask(void);

/* fz_monitor_follow_mask(), outside the runtime. */
void fz_monitor_update_mask(void);

/*
 * Returns when the monitor has routed the signals that it had taken from the kernel before the call.
 * While the monitor sleeps it has taken none that is not routed: then this costs one system call.
 * Outside the runtime.
 */
void fz_monitor_settle(void);

/*
 * By the monitor: set its mask; route what has come; then report the change, which the first has
 * returned, to those who wait for it.
 */
uint32_t fz_monitor_apply_mask(void);
void fz_monitor_mask_applies(uint32_t wanted);
void fz_monitor_mask_after_fork(void);

#endif
