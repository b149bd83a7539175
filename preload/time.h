/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_TIME_H
#define FZ_PRELOAD_TIME_H

/*
 * preload/time.h - libc's timeouts as deadlines of the runtime.
 */

#include "preload/init.h"
#include "preload/real.h"
#include "runtime/base/host.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/sched/timer.h"

/* Is *ts readable? A system call fails with EFAULT for a bad address, so a fiber must not crash there. */
static inline bool fz_timespec_readable(const struct timespec *ts)
{
	return fz_sys_readable(&ts->tv_sec) && fz_sys_readable(&ts->tv_nsec);
}

/* Store the value, as the kernel would.  Returns false if the program may not write there. */
static inline bool fz_timespec_store(struct timespec *to, struct timespec value)
{
	if (!fz_sys_writable(&to->tv_sec) || !fz_sys_writable(&to->tv_nsec))
		return false;
	*to = value;
	return true;
}

static inline bool fz_timespec_valid(const struct timespec *ts)
{
	return ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000;
}

static inline fz_nsec fz_timespec_nsec(const struct timespec *ts)
{
	if (ts->tv_sec < 0)
		return 0;
	if ((uint64_t)ts->tv_sec >= UINT64_MAX / FZ_SEC / 4)
		return FZ_FOREVER;
	return (fz_nsec)ts->tv_sec * FZ_SEC + (fz_nsec)ts->tv_nsec;
}

static inline struct timespec fz_timespec_of(fz_nsec span)
{
	return (struct timespec){ .tv_sec = (time_t)(span / FZ_SEC),
				  .tv_nsec = (long)(span % FZ_SEC) };
}

/* How long it is from now to the deadline; 0 if the deadline has passed. */
static inline struct timespec fz_timespec_left(fz_nsec deadline)
{
	fz_nsec now = fz_now();

	return fz_timespec_of(deadline > now ? deadline - now : 0);
}

/* Returns a relative timeout for a call: ret_left, with the time left; or NULL for FZ_FOREVER. */
static inline struct timespec *fz_timeout_left(fz_nsec deadline, struct timespec *ret_left)
{
	if (deadline == FZ_FOREVER)
		return NULL;
	*ret_left = fz_timespec_left(deadline);
	return ret_left;
}

/* The deadline that is a span from now; never 0, which some callees take for "do not wait". */
static inline fz_nsec fz_deadline_after(fz_nsec span)
{
	return span >= FZ_FOREVER / 4 ? FZ_FOREVER : fz_now() + span;
}

/*
 * The deadline for an absolute time of CLOCK_REALTIME or CLOCK_MONOTONIC; a time in the past
 * gives a deadline in the past. CLOCK_REALTIME may be set during the wait, so after the wait the
 * caller checks whether the time has really passed (fz_passed).
 */
static inline fz_nsec fz_deadline_at(clockid_t clock, const struct timespec *when)
{
	/* A preloaded library may fake the clocks (faketime): such a time says how long to wait, and nothing else. */
	const bool faked = fz_real.clock_gettime != fz_host.clock_gettime;
	struct timespec ts;
	fz_nsec at = fz_timespec_nsec(when), now;

	if (at == FZ_FOREVER || (clock == CLOCK_MONOTONIC && !faked))
		return at == 0 ? 1 : at;
	/* Only a runtime that runs knows libc's clock_gettime(). */
	if (!faked && fz_runtime_runs())
		return fz_clock_until(fz_self(), at);
	fz_real.clock_gettime(clock, &ts);
	now = fz_timespec_nsec(&ts);
	return at <= now ? 1 : fz_now() + (at - now);
}

static inline bool fz_passed(clockid_t clock, const struct timespec *when)
{
	struct timespec now;

	fz_real.clock_gettime(clock, &now);
	return now.tv_sec > when->tv_sec ||
	       (now.tv_sec == when->tv_sec && now.tv_nsec >= when->tv_nsec);
}

#endif
