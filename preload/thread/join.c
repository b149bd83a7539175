/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/join.c - pthread_join and its variants, detach, exit. The pthread_t tells whether
 * the thread is a fiber or libc's.
 */
#include "preload/gate.h"
#include "preload/thread/handle.h"
#include "preload/time.h"
#include "runtime/base/host.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"

/* Returns 0 or -errno. */
static int join_fiber(struct fz_fiber *fiber, fz_nsec deadline, void **result)
{
	int ret;

	/* As in libc, a cancelled thread still joins a thread that has already ended. */
	while ((ret = fz_fiber_join(fiber, deadline, result)) == -ECANCELED)
		fz_host.test_cancel();
	return ret;
}

FZ_EXPORT int pthread_join(pthread_t thread, void **result)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_join);
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	if (fiber)
		return fz_leave_pthread(join_fiber(fiber, FZ_FOREVER, result));
	if (self)
		fz_announce(self);
	return fz_real.pthread_join(thread, result);
}

FZ_EXPORT int pthread_tryjoin_np(pthread_t thread, void **result)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	fz_enter(FZ_SYM_pthread_tryjoin_np);
	return fiber ? fz_leave_pthread(join_fiber(fiber, 0, result)) :
		       fz_real.pthread_tryjoin_np(thread, result);
}

static int join_until(struct fz_fiber *fiber, void **result, clockid_t clock,
		      const struct timespec *when)
{
	struct timespec until;
	int ret;

	if (!when)
		return join_fiber(fiber, FZ_FOREVER, result);
	until = *when;
	if (!fz_timespec_valid(&until))
		return -EINVAL;
	do {
		ret = join_fiber(fiber, until.tv_sec < 0 ? 1 : fz_deadline_at(clock, &until),
				 result);
	} while (ret == -ETIMEDOUT && !fz_passed(clock, &until));
	return ret;
}

FZ_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_timedjoin_np);
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	if (fiber)
		return fz_leave_pthread(join_until(fiber, result, CLOCK_REALTIME, when));
	if (self)
		fz_announce(self);
	return fz_real.pthread_timedjoin_np(thread, result, when);
}

FZ_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
				   const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_clockjoin_np);
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return fz_leave_pthread(-EINVAL);
	if (fiber)
		return fz_leave_pthread(join_until(fiber, result, clock, when));
	if (self)
		fz_announce(self);
	return fz_real.pthread_clockjoin_np(thread, result, clock, when);
}

FZ_EXPORT int pthread_detach(pthread_t thread)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	fz_enter(FZ_SYM_pthread_detach);
	return fiber ? fz_leave_pthread(fz_fiber_detach(fiber)) : fz_real.pthread_detach(thread);
}

FZ_EXPORT _Noreturn void pthread_exit(void *result)
{
	fz_enter(FZ_SYM_pthread_exit);
	fz_self()->thread.result = result;
	fz_real.pthread_exit(result);
	__builtin_unreachable();
}
