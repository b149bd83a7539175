/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/clock.c - CPU-time clocks and usage of a thread, for fibers.
 *
 * A clock id of pthread_getcpuclockid() contains the thread's tid, as in the kernel; a fiber's
 * contains its virtual tid. runtime/fiber/cputime.h says how exact the clock is. The other fields
 * of getrusage(RUSAGE_THREAD), such as faults and switches, are the carrier's.
 */
#include "preload/thread/clock.h"

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/time.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/wire.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* The kernel's encoding: ~tid << 3 | per thread | which clock; 3 is no CPU-time clock. */
enum { PER_THREAD = 4, WHICH = 3, SCHEDULED = 2, NOT_CPU = 3, TID_MASK = (1 << 28) - 1 };

struct fz_fiber *fz_clock_fiber(clockid_t clock)
{
	struct fz_fiber *self = fz_self();

	if (FZ_LIKELY(clock >= 0 && clock != CLOCK_THREAD_CPUTIME_ID))
		return NULL;
	if (!fz_runtime_runs() || atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return NULL;
	if (clock != CLOCK_THREAD_CPUTIME_ID) {
		int tid = ~(clock >> 3) & TID_MASK;

		if (!(clock & PER_THREAD) || (clock & WHICH) == NOT_CPU)
			return NULL;
		if (tid)
			return fz_fiber_by_clock_tid(tid, TID_MASK);
	}
	return fz_is_fiber(self) ? self : NULL;
}

clockid_t fz_clock_of_kernel(clockid_t clock)
{
	struct fz_fiber *fiber = fz_clock_fiber(clock);

	/* The kernel's clock will count the process's first kernel thread, so the main thread must stay on that. */
	if (!fz_runtime_runs() && (clock == CLOCK_THREAD_CPUTIME_ID ||
			      (clock < 0 && clock & PER_THREAD && (clock & WHICH) != NOT_CPU)))
		fz_wire_main_at_start();
	if (!fiber)
		return clock;
	if (fiber == fz_self())
		fz_fiber_wire_for(fiber, "a timer or clock of its CPU time");
	if (fiber->kind != FZ_KIND_WIRED || clock == CLOCK_THREAD_CPUTIME_ID)
		return clock;
	return (clockid_t)(~(unsigned)fz_fiber_kernel_tid(fiber) << 3 | (clock & (PER_THREAD | WHICH)));
}

FZ_EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
	struct fz_fiber *fiber;

	fz_enter(FZ_SYM_clock_gettime);
	fiber = fz_clock_fiber(clock);
	if (FZ_LIKELY(!fiber) || !fz_timespec_store(ret, fz_timespec_of(fz_cputime_of(fiber))))
		return fz_real.clock_gettime(clock, ret);
	return 0;
}
FZ_EXPORT_ALIAS(__clock_gettime, clock_gettime);

FZ_EXPORT int clock_getres(clockid_t clock, struct timespec *ret)
{
	fz_enter(FZ_SYM_clock_getres);
	return fz_real.clock_getres(fz_clock_fiber(clock) ? CLOCK_THREAD_CPUTIME_ID : clock,
				    ret);
}

FZ_EXPORT int pthread_getcpuclockid(pthread_t thread, clockid_t *ret)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_getcpuclockid);
	if (!fz_is_fiber(fiber))
		return fz_real.pthread_getcpuclockid(thread, ret);
	if (atomic_load_explicit(&fiber->thread.life, memory_order_acquire) &
	    (FZ_LIFE_FREE | FZ_LIFE_ENDED))
		return fz_leave_pthread(-ESRCH);
	*ret = (clockid_t)(~((unsigned)fiber->thread.tid & TID_MASK) << 3 | PER_THREAD | SCHEDULED);
	return 0;
}

/*
 * A fiber uses at most as much CPU time as real time passes, so the clock cannot be due before the
 * difference has passed: sleep that long, then look again.
 */
int fz_clock_sleep(struct fz_fiber *self, clockid_t clock, int flags,
		   const struct timespec *time, struct timespec *rem)
{
	struct fz_fiber *fiber = fz_clock_fiber(clock);
	uint64_t due, now;

	if (!fz_timespec_valid(time) || time->tv_sec < 0 || fiber == fz_self())
		return -EINVAL;
	now = fz_cputime_of(fiber);
	due = fz_timespec_nsec(time);
	if (!(flags & TIMER_ABSTIME))
		due = due > FZ_FOREVER - now ? FZ_FOREVER : due + now;
	while (now < due) {
		uint64_t left = due - now < FZ_MSEC ? FZ_MSEC : due - now;
		struct timespec ts = fz_timespec_of(left);
		bool interrupted = self ? fz_sleep_until(self, fz_deadline_after(left)) != 0 :
					  fz_real.nanosleep(&ts, NULL) != 0;

		/* A fiber that has ended uses no more CPU time. */
		if (fz_clock_fiber(clock) == fiber)
			now = fz_cputime_of(fiber);
		if (!interrupted)
			continue;
		if (rem && !(flags & TIMER_ABSTIME) &&
		    !fz_timespec_store(rem, fz_timespec_of(now < due ? due - now : 0)))
			return -EFAULT;
		return -EINTR;
	}
	return 0;
}

/*
 * Split the CPU time used since the last call into user and system time, in the carrier's
 * proportion. Neither part goes backwards.
 */
static void set_times(struct fz_fiber *self, struct rusage *usage)
{
	uint64_t user = (uint64_t)usage->ru_utime.tv_sec * 1000000 +
			(uint64_t)usage->ru_utime.tv_usec;
	uint64_t system = (uint64_t)usage->ru_stime.tv_sec * 1000000 +
			  (uint64_t)usage->ru_stime.tv_usec;
	uint64_t added = fz_cputime_of(self) - self->cpu.user_seen - self->cpu.system_seen;
	uint64_t of_system = user + system ?
				     (uint64_t)((double)added * (double)system /
						(double)(user + system)) :
				     0;

	self->cpu.system_seen += of_system;
	self->cpu.user_seen += added - of_system;
	usage->ru_utime.tv_sec = (time_t)(self->cpu.user_seen / FZ_SEC);
	usage->ru_utime.tv_usec = (suseconds_t)(self->cpu.user_seen % FZ_SEC / FZ_USEC);
	usage->ru_stime.tv_sec = (time_t)(self->cpu.system_seen / FZ_SEC);
	usage->ru_stime.tv_usec = (suseconds_t)(self->cpu.system_seen % FZ_SEC / FZ_USEC);
}

FZ_EXPORT int getrusage(__rusage_who_t who, struct rusage *usage)
{
	struct fz_fiber *self = fz_self();
	int ret;

	fz_enter(FZ_SYM_getrusage);
	ret = fz_real.getrusage(who, usage);
	if (ret == 0 && (int)who == RUSAGE_THREAD && fz_is_fiber(self) &&
	    !atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		set_times(self, usage);
	return ret;
}
