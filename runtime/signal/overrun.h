/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_OVERRUN_H
#define FZ_RUNTIME_SIGNAL_OVERRUN_H

/*
 * runtime/signal/overrun.h - signals of the program's timers, and how many expirations one
 * signal stands for.
 *
 * A timer made by timer_create() has at most one signal pending, also if that is a real-time
 * signal. Further expirations are counted, for si_overrun and timer_getoverrun(). The kernel counts
 * only while the signal is pending in the kernel. But the monitor takes the signal from the kernel at
 * once, and the kernel sends another one: this file counts that one, until the first is handled.
 *
 * An overrun ticket is the right to be that first signal. The ticket and its signal are void
 * once the timer has been set again or deleted, or another signal of the timer was handled
 * instead.
 *
 * Everything here may be called in any context.
 */

#include "runtime/fiber/fiber.h"

/*
 * A timer's signal has arrived and is not handled right now. Returns false if the timer has a
 * signal pending already, which counts this one. *ret_ticket is 0 if there is no room to count:
 * then each signal is handled.
 */
bool fz_overrun_arrived(const void *siginfo, uint64_t *ret_ticket);

/* Is the ticket void? Ticket 0 never is. */
bool fz_overrun_is_void(uint64_t ticket);

/*
 * Call this before the signal with this ticket is handled: it writes into siginfo how many expirations
 * the signal stands for besides its own. Returns false if the ticket is void.
 */
bool fz_overrun_redeem(uint64_t ticket, void *siginfo);

/* The signal with this ticket will never be handled. */
void fz_overrun_forget(uint64_t ticket);

/*
 * A timer's signal has arrived and is handled at once. If another signal of the timer is pending
 * with us, add the expirations that it stands for to siginfo; its ticket becomes void.
 */
void fz_overrun_collect(void *siginfo);

/* A thread has received the signal: note what timer_getoverrun() must answer. */
void fz_overrun_tell(const void *siginfo);

/* The answer of timer_getoverrun(), or -1 if the kernel must be asked. */
int fz_overrun_told(int timer);

/*
 * The timer was set again, and its next expiration is not before not_before: if that time has not come yet, its
 * pending signals become void. not_before: 0 if that time is not known; FZ_FOREVER, with `deleted` true, if the
 * timer was deleted.
 */
void fz_overrun_void(int timer, fz_nsec not_before, bool deleted);

/* Has a timer ever sent that signal? Then a pending one may be void. */
bool fz_overrun_is_timers(int sig);

void fz_overrun_after_fork(void);

#endif
