/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_MONITOR_MASK_H
#define FZ_RUNTIME_SIGNAL_MONITOR_MASK_H

/*
 * runtime/signal/monitor_mask.h - the monitor's signal mask, and waiting for the monitor.
 *
 * The monitor takes the signals that some fiber accepts.  It blocks, and so leaves to the kernel, all other
 * signals and those that are ignored in the kernel for a moment (fz_signals_hidden).  A thread may wait until
 * the monitor's mask has followed a change, or until the monitor has routed the signals that it has taken.
 */

#include "runtime/base/base.h"

/*
 * Call when fz_signal_left_to_kernel() has changed.  Returns when the monitor's signal mask has
 * followed, and the monitor has routed the signals that the kernel had for it before the call: a
 * signal that no fiber accepts any more must not come to the monitor.  In the runtime, no lock held.
 * Does nothing in a process whose runtime does not run.
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
 * By the monitor, in this order: fz_monitor_apply_mask() sets its mask; the monitor routes the signals that
 * have come; fz_monitor_mask_applies(), with what the first has returned, reports the change to threads that
 * wait for it.
 */
uint32_t fz_monitor_apply_mask(void);
void fz_monitor_mask_applies(uint32_t wanted);
void fz_monitor_mask_after_fork(void);

#endif
