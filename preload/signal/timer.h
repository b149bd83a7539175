/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_TIMER_H
#define FZ_PRELOAD_SIGNAL_TIMER_H

/*
 * preload/signal/timer.h - timers that send signals.
 */

#include <stdbool.h>

#include "preload/libc_proto.h"

/*
 * Make a system call, by number, that makes, sets, deletes or asks a timer, or sets ITIMER_REAL. a: the
 * arguments. Returns false if the caller must make the real call.
 */
bool fz_timer_by_number(long number, const long *a, long *ret);

#endif
