/* SPDX-License-Identifier: MIT */
/*
 * preload/io/sleep.c - sleep, usleep, nanosleep, clock_nanosleep, sched_yield.
 *
 * A handler ends a sleep with EINTR, even with SA_RESTART, and the remaining time is reported.
 * For any other reason no sleep returns early.  On clocks other than CLOCK_REALTIME, CLOCK_MONOTONIC
 * and the CPU-time clocks of fibers, the real call sleeps.
 */
#include "preload/gate.h"
#include "preload/thread/clock.h"
#include "preload/time.h"
#include "runtime/base/time.h"
#include "runtime/io/io.h"
#include "runtime/io/real_call.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* Returns 0 or -errno. */
static int sleep_span(struct fz_fiber *self, const struct timespec *span, struct timespec *rem)
{
	fz_nsec deadline;

	if (!fz_timespec_valid(span) || span->tv_sec < 0)
		return -EINVAL;
	deadline = fz_deadline_after(fz_timespec_nsec(span));
	if (fz_sleep_until(self, deadline) == 0)
		return 0;
	return rem && !fz_timespec_store(rem, fz_timespec_left(deadline)) ? -EFAULT : -EINTR;
}

static int sleep_until(struct fz_fiber *self, clockid_t clock, struct timespec when)
{
	if (!fz_timespec_valid(&when) || when.tv_sec < 0)
		return -EINVAL;
	do {
		if (fz_sleep_until(self, fz_deadline_at(clock, &when)) != 0)
			return -EINTR;
	} while (!fz_passed(clock, &when));
	return 0;
}

/* Sleep on a clock that only the kernel can wait for. Returns 0 or -errno. */
static int sleep_in_kernel(struct fz_fiber *self, clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *rem)
{
	struct fz_real_call call = fz_call_begin(self, 0);
	struct timespec left = *time;
	int ret;

	do
		ret = -fz_real.clock_nanosleep(clock, flags, &left, &left);
	while (fz_call_again(&call, ret));
	if (ret == -EINTR && rem && !(flags & TIMER_ABSTIME) && !fz_timespec_store(rem, left))
		return -EFAULT;
	return ret;
}

FZ_EXPORT int nanosleep(const struct timespec *span, struct timespec *rem)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_nanosleep);

	if (!self || !fz_timespec_readable(span))
		return fz_real.nanosleep(span, rem);
	return (int)fz_leave(sleep_span(self, span, rem));
}
FZ_EXPORT_ALIAS(__nanosleep, nanosleep);

FZ_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			      struct timespec *rem)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_clock_nanosleep);

	if (time && fz_clock_fiber(clock) && clock != CLOCK_THREAD_CPUTIME_ID &&
	    fz_timespec_readable(time))
		return fz_leave_pthread(fz_clock_sleep(self, clock, flags, time, rem));
	if (!self || !fz_timespec_readable(time))
		return fz_real.clock_nanosleep(clock, flags, time, rem);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return fz_leave_pthread(sleep_in_kernel(self, clock, flags, time, rem));
	return fz_leave_pthread(flags & TIMER_ABSTIME ? sleep_until(self, clock, *time) :
							sleep_span(self, time, rem));
}

FZ_EXPORT unsigned sleep(unsigned seconds)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sleep);
	struct timespec span = { .tv_sec = seconds }, rem;

	if (!self)
		return fz_real.sleep(seconds);
	if (sleep_span(self, &span, &rem) == 0)
		return 0;
	/* glibc drops the fraction of a second, and leaves the errno of nanosleep. */
	fz_leave(-EINTR);
	return (unsigned)rem.tv_sec;
}

FZ_EXPORT int usleep(useconds_t useconds)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_usleep);
	struct timespec span = { .tv_sec = useconds / 1000000,
				 .tv_nsec = (long)(useconds % 1000000) * 1000 };

	if (!self)
		return fz_real.usleep(useconds);
	return (int)fz_leave(sleep_span(self, &span, NULL));
}

FZ_EXPORT int sched_yield(void)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sched_yield);

	bool others;

	if (!self)
		return fz_real.sched_yield();
	fz_enter_runtime(self);
	others = fz_sched_yield(self);
	fz_leave_runtime(self);
	/*
	 * If no other fiber is runnable, yield to kernel threads: the caller may spin for one that
	 * needs this CPU.
	 */
	return others ? 0 : fz_real.sched_yield();
}
FZ_EXPORT_ALIAS(__sched_yield, sched_yield);
/* libc's header renames pthread_yield to sched_yield. */
extern int fz_old_yield(void) __asm__("pthread_yield")
	__attribute__((alias("sched_yield"), visibility("default")));
