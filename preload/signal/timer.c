/* SPDX-License-Identifier: MIT */
/*
 * preload/signal/timer.c - timers that send signals: timer_create and its family, setitimer,
 * alarm, ualarm.
 *
 * If a timer signals one thread or counts its CPU time, the kernel must know that thread. The thread
 * is nearly always the caller, and is then wired. If it is another fiber, the signals go to the
 * process, and a timer on the CPU time of that fiber is refused.
 *
 * A thread that sets a timer anew or stops it, and accepts its signal, must have handled what the
 * timer sent before: natively this happens at the latest when the call returns. Here the signal
 * may still be on its way through the monitor, so these calls wait for the monitor. Afterwards a
 * pending signal of a timer made by timer_create is void, as in the kernel
 * (runtime/signal/overrun.h).
 */
#include "preload/signal/timer.h"

#include <limits.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/clock.h"
#include "preload/time.h"
#include "runtime/base/time.h"
#include "runtime/fiber/wire.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/overrun.h"
#include "runtime/signal/signal.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * Translate the clock and the event into what the kernel understands: the clock is returned; the
 * event, which may be NULL, is changed. May make the caller a kernel thread.
 */
static clockid_t prepare(clockid_t clock, struct sigevent *event)
{
	struct fz_fiber *self = fz_self(), *target = NULL;

	if (!event || event->sigev_notify != SIGEV_THREAD_ID)
		return fz_clock_of_kernel(clock);
	if (event->sigev_notify_thread_id == gettid()) {
		fz_fiber_wire_for(self, "a timer sends it signals by its thread id");
		target = self;
	} else {
		target = fz_fiber_by_tid(event->sigev_notify_thread_id);
	}
	if (target && target->kind == FZ_KIND_FIBER) {
		event->sigev_notify = SIGEV_SIGNAL;
	} else if (target) {
		if (target->kind == FZ_KIND_WIRED)
			event->sigev_notify_thread_id = fz_fiber_kernel_tid(target);
		/* relaxed: the kernel sends no signal of this timer before timer_create. */
		if (event->sigev_signo >= 1 && event->sigev_signo <= FZ_SIGNALS)
			atomic_fetch_or_explicit(&target->sig.timer_signals,
						 fz_signal_bit(event->sigev_signo),
						 memory_order_relaxed);
	}
	return fz_clock_of_kernel(clock);
}

FZ_EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *ret_timer)
{
	struct sigevent changed;

	fz_enter(FZ_SYM_timer_create);
	if (event)
		changed = *event;
	clock = prepare(clock, event ? &changed : NULL);
	return fz_real.timer_create(clock, event ? &changed : NULL, ret_timer);
}

/* ---- set anew, stopped --------------------------------------------------- */

/* Have the monitor give out the signals that it has taken; the caller handles its own. */
static void handle_sent(struct fz_fiber *self)
{
	if (self)
		fz_monitor_update_mask();
}

/*
 * Returns the kernel's id of a timer, which is libc's timer_t; or -1 for a timer with SIGEV_THREAD, which
 * sends no signals: its timer_t is negative.
 */
static int kernel_timer(timer_t timer)
{
	intptr_t word = (intptr_t)timer;

	return word >= 0 && word <= INT_MAX ? (int)word : -1;
}

static bool is_zero(const struct timespec *ts)
{
	return ts->tv_sec == 0 && ts->tv_nsec == 0;
}

/*
 * One bit for each timer, by its id: the timer has been set, and may have expired, since its
 * signals were last handled. Timers whose ids are a multiple of 65536 apart share a bit: one of
 * them may have its signal a moment late.
 */
enum { BITS = 65536 };

static _Atomic uint64_t in_use[BITS / 64];

static uint64_t bit_of(int id)
{
	return (uint64_t)1 << id % 64;
}

static _Atomic uint64_t *word_of(int id)
{
	return &in_use[id % BITS / 64];
}

static bool is_used(int id)
{
	/* relaxed, as below: calls for one timer at the same time have no order. */
	return atomic_load_explicit(word_of(id), memory_order_relaxed) & bit_of(id);
}

static void note_used(int id)
{
	atomic_fetch_or_explicit(word_of(id), bit_of(id), memory_order_relaxed);
}

static void note_unused(int id)
{
	atomic_fetch_and_explicit(word_of(id), ~bit_of(id), memory_order_relaxed);
}

/* Has the timer expired, or is it periodic? */
static bool may_have_sent(const struct itimerspec *was)
{
	return is_zero(&was->it_value) || !is_zero(&was->it_interval);
}

/*
 * Called before the kernel discards the timer's pending signal: handle the signals that the timer has
 * sent so far, since natively they would have been handled by now. Returns whether the timer may
 * send another signal before the kernel discards it.
 */
static bool handle_sent_before(struct fz_fiber *self, int id)
{
	struct itimerspec was;

	if (!self || !is_used(id) || fz_syscall2(__NR_timer_gettime, id, (long)&was))
		return false;
	if (may_have_sent(&was))
		handle_sent(self);
	return !is_zero(&was.it_value);
}

/* The earliest time at which the timer sends a signal, if it was set after `begin`. */
static fz_nsec first_expiry(fz_nsec begin, int flags, const struct itimerspec *set)
{
	if (is_zero(&set->it_value))
		return FZ_FOREVER;
	/* An absolute time may have passed already. */
	return flags & TIMER_ABSTIME ? 0 : begin + fz_timespec_nsec(&set->it_value);
}

FZ_EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *set,
			    struct itimerspec *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_timer_settime);
	const int id = kernel_timer(timer);
	struct itimerspec old;
	fz_nsec begin;
	bool more;
	int ret;

	if (id < 0)
		return fz_real.timer_settime(timer, flags, set, ret_old);
	if (!ret_old)
		ret_old = &old;
	more = handle_sent_before(self, id);
	begin = fz_now();
	/* Noted before the timer can expire. */
	note_used(id);
	ret = fz_real.timer_settime(timer, flags, set, ret_old);
	if (ret == 0) {
		if (more && may_have_sent(ret_old))
			handle_sent(self);
		if (is_zero(&set->it_value))
			note_unused(id);
		fz_overrun_void(id, first_expiry(begin, flags, set), false);
	}
	return ret;
}

FZ_EXPORT int timer_delete(timer_t timer)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_timer_delete);
	const int id = kernel_timer(timer);
	bool more;
	int ret;

	if (id < 0)
		return fz_real.timer_delete(timer);
	more = handle_sent_before(self, id);
	ret = fz_real.timer_delete(timer);
	if (ret == 0) {
		if (more)
			handle_sent(self);
		note_unused(id);
		fz_overrun_void(id, FZ_FOREVER, true);
	}
	return ret;
}

FZ_EXPORT int timer_getoverrun(timer_t timer)
{
	const int id = kernel_timer(timer);
	int told;

	fz_enter(FZ_SYM_timer_getoverrun);
	/*
	 * Ask the library first: the handler may run inside timer_delete, when the kernel has
	 * forgotten the timer.
	 */
	told = id < 0 ? -1 : fz_overrun_told(id);
	return told < 0 ? fz_real.timer_getoverrun(timer) : told;
}

/* ---- the process's own ---------------------------------------------------- */

/* True at first: exec keeps the timer, so it may be set already. */
static _Atomic bool real_timer_set = true;

/*
 * ITIMER_REAL was set, or stopped (set is false). sent: the timer had expired before, or was periodic, so
 * its signals must be handled now.
 */
static void real_timer_changed(struct fz_fiber *self, bool set, bool sent)
{
	/* relaxed: calls at the same time have no order. */
	if (atomic_exchange_explicit(&real_timer_set, set, memory_order_relaxed) && sent)
		handle_sent(self);
}

static bool is_set(const struct timeval *tv)
{
	return tv->tv_sec || tv->tv_usec;
}

FZ_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *set,
			struct itimerval *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_setitimer);
	struct itimerval old;
	int ret;

	if ((int)which != ITIMER_REAL)
		return fz_real.setitimer(which, set, ret_old);
	if (!ret_old)
		ret_old = &old;
	ret = fz_real.setitimer(which, set, ret_old);
	if (ret == 0)
		real_timer_changed(self, set && is_set(&set->it_value),
				   !is_set(&ret_old->it_value) || is_set(&ret_old->it_interval));
	return ret;
}

/* Is the timer periodic? */
static bool real_timer_repeats(void)
{
	struct itimerval was;

	return fz_syscall2(__NR_getitimer, ITIMER_REAL, (long)&was) == 0 &&
	       is_set(&was.it_interval);
}

FZ_EXPORT unsigned alarm(unsigned seconds)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_alarm);
	bool repeats = self && real_timer_repeats();
	unsigned left = fz_real.alarm(seconds);

	real_timer_changed(self, seconds != 0, repeats || left == 0);
	return left;
}

FZ_EXPORT useconds_t ualarm(useconds_t value, useconds_t interval)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_ualarm);
	bool repeats = self && real_timer_repeats();
	useconds_t left = fz_real.ualarm(value, interval);

	real_timer_changed(self, value != 0, repeats || left == 0 || left == (useconds_t)-1);
	return left;
}

/* ---- by number -------------------------------------------------------------- */

static bool create_by_number(const long *a, long *ret)
{
	struct sigevent event, *changed = NULL;

	if (!fz_runtime_runs() || (a[1] && !fz_sys_readable((void *)a[1])))
		return false;
	if (a[1])
		changed = memcpy(&event, (void *)a[1], sizeof(event));
	*ret = fz_real.syscall(SYS_timer_create, prepare((clockid_t)a[0], changed), changed, a[2]);
	return true;
}

bool fz_timer_by_number(long number, const long *a, long *ret)
{
	/* The kernel's id is libc's timer_t. */
	timer_t timer = (timer_t)(intptr_t)(int)a[0];

	switch (number) {
	case SYS_timer_create:
		return create_by_number(a, ret);
	case SYS_setitimer:
		*ret = setitimer((__itimer_which_t)a[0], (const struct itimerval *)a[1],
				 (struct itimerval *)a[2]);
		return true;
#ifdef SYS_alarm
	case SYS_alarm:
		*ret = (long)alarm((unsigned)a[0]);
		return true;
#endif
	default:
		if (kernel_timer(timer) < 0)
			return false;
		break;
	}
	if (number == SYS_timer_settime)
		*ret = timer_settime(timer, (int)a[1], (const struct itimerspec *)a[2],
				     (struct itimerspec *)a[3]);
	else if (number == SYS_timer_delete)
		*ret = timer_delete(timer);
	else
		*ret = timer_getoverrun(timer);
	return true;
}
