/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_MONITOR_H
#define FZ_RUNTIME_MONITOR_H

/*
 * runtime/monitor.h - the kernel thread that takes processors back.
 *
 * Looks every millisecond while any processor is in use, sleeps without a
 * timeout when none is.  Also starts carriers, because that takes a thread that
 * may block, and receives signals that nobody else is there to receive.
 */

#include "runtime/base.h"

/* Start it, with signal mask `mask`.  Returns 0 or -errno. */
int fz_monitor_start(uint64_t mask);

/* A processor is in use again.  Any thread; cheap while the monitor is awake. */
void fz_monitor_note_activity(void);

/* Something wants attention now.  Any thread, signal handlers too. */
void fz_monitor_poke(void);

/* A carrier is wanted for a processor that nobody runs.  Any thread. */
void fz_monitor_want_carrier(void);

/* Change its signal mask; returns when that is in force. */
void fz_monitor_set_mask(uint64_t mask);

void fz_monitor_after_fork(void);

#endif
