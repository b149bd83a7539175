/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_TIMER_H
#define FZ_PRELOAD_SIGNAL_TIMER_H

/*
 * preload/signal/timer.h - timers that send signals.
 */

#include <stdbool.h>

#include "preload/libc_proto.h"

/* System calls that make, set, stop or ask timers.  False: the real call. */
bool fz_timer_by_number(long number, const long *a, long *ret);

#endif
