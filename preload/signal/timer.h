/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_TIMER_H
#define FZ_PRELOAD_SIGNAL_TIMER_H

/*
 * preload/signal/timer.h - timers that send signals.
 */

#include <stdbool.h>

#include "preload/libc_proto.h"

/*
 * What the kernel is to be asked for instead: the clock is returned, the event, which
 * may be NULL, is changed.  May make the caller a kernel thread.
 */
clockid_t fz_timer_prepare(clockid_t clock, struct sigevent *event);

/* System calls that set, stop or ask timers.  False: the real call. */
bool fz_timer_by_number(long number, const long *a, long *ret);

#endif
