/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_OVERRUN_H
#define FZ_RUNTIME_SIGNAL_OVERRUN_H

/*
 * runtime/signal/overrun.h - the signals of the program's timers, and how many of them one
 * stands for.
 *
 * A timer made by timer_create() has one signal pending at most, of whatever number; what
 * it would have sent besides is counted, in si_overrun and for timer_getoverrun().  The
 * kernel counts as long as the signal is pending there.  The monitor takes it at once, so
 * the kernel sends the next: that is counted here, until the first is handled.
 *
 * A ticket is the right to be that first one.  It is void, and so is the signal, once the
 * timer has been set again or deleted, or another signal of it was handled instead.
 *
 * Everything here may be called in any context.
 */

#include "runtime/fiber/fiber.h"

/*
 * A signal of a timer, which is not handled right now.  False if another one counts it.
 * *ret_ticket is 0 if there is no room to count: then each of them is handled.
 */
bool fz_overrun_arrived(const void *siginfo, uint64_t *ret_ticket);

/* Void?  Not 0. */
bool fz_overrun_is_void(uint64_t ticket);

/* It is about to be handled: siginfo is to say what it stands for.  False if it is void. */
bool fz_overrun_redeem(uint64_t ticket, void *siginfo);

/* It never will. */
void fz_overrun_forget(uint64_t ticket);

/* Just arrived and about to be handled, as the one that is pending with us. */
void fz_overrun_collect(void *siginfo);

/* A thread has got it: what timer_getoverrun() has to say. */
void fz_overrun_tell(const void *siginfo);

/* ... or -1, if the kernel is to be asked. */
int fz_overrun_told(int timer);

/*
 * The timer was set again and sends nothing before that time: what is pending is void.
 * Never, and so deleted, if it is FZ_FOREVER and `deleted`.
 */
void fz_overrun_void(int timer, fz_nsec not_before, bool deleted);

/* Has a timer ever had that signal?  Then what is pending may be void. */
bool fz_overrun_is_timers(int sig);

void fz_overrun_after_fork(void);

#endif
