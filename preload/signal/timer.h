/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_TIMER_H
#define FZ_PRELOAD_SIGNAL_TIMER_H

/*
 * preload/signal/timer.h - timers that send signals.
 */

#include <stdbool.h>

#include "preload/libc_proto.h"

/* A system call, by number, that makes, sets, stops or asks a timer. False: make the real call. */
bool fz_timer_by_number(long number, const long *a, long *ret);

#endif
