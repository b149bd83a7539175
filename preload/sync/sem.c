/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/sem.c - private semaphores are ours. Process-shared semaphores, and so all named
 * ones, are libc's, and a fiber announces its wait. libc's init, destroy, getvalue and the
 * functions for named semaphores serve for all. sem_post is async-signal-safe.
 */
#include "preload/gate.h"
#include "preload/real_call.h"
#include "preload/time.h"
#include "runtime/base/host.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/sem.h"

_Static_assert(sizeof(struct fz_sem) <= sizeof(sem_t), "lives inside it");

static struct fz_sem *ours(sem_t *s)
{
	struct fz_sem *sem = (struct fz_sem *)(void *)s;

	return sem->shared || fz_locks_are_libcs ? NULL : sem;
}

/* Wait for a semaphore of libc's. */
static int wait_for_libcs(struct fz_fiber *self, sem_t *s)
{
	struct fz_blocked call;
	int saved = errno;

	if (self && !fz_cancel_requested(self) && fz_real.sem_trywait(s) == 0)
		return 0;
	errno = saved;
	call = fz_block(self, FZ_CALL_RESTARTS);
	return FZ_REPEAT(&call, fz_real.sem_wait(s));
}

static int wait_common(struct fz_sem *sem, fz_nsec deadline)
{
	struct fz_fiber *self = fz_self();
	int ret;

	do {
		if (fz_cancel_requested(self))
			fz_host.test_cancel();
		ret = fz_sem_wait(sem, deadline);
	} while (ret == -ECANCELED);
	return ret;
}

/*
 * Act on a cancellation request before a wait until `when` for a semaphore of libc's. As in libc, an
 * invalid time is an error first: the cancellation is then not acted on.
 */
static void test_cancel(struct fz_fiber *self, const struct timespec *when)
{
	if (self && fz_timespec_valid(when) && fz_cancel_requested(self))
		fz_host.test_cancel();
}

/* The time is validated even if the semaphore is free, as in glibc. */
static int wait_until(struct fz_sem *sem, clockid_t clock, struct timespec when)
{
	int ret;

	if (!fz_timespec_valid(&when))
		return -EINVAL;
	if (!fz_cancel_requested(fz_self()) && fz_sem_trywait(sem) == 0)
		return 0;
	do {
		ret = wait_common(sem, when.tv_sec < 0 ? 1 : fz_deadline_at(clock, &when));
	} while (ret == -ETIMEDOUT && !fz_passed(clock, &when));
	return ret;
}

FZ_EXPORT int sem_wait(sem_t *s)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sem_wait);
	struct fz_sem *sem = ours(s);

	if (sem)
		return (int)fz_leave(wait_common(sem, FZ_FOREVER));
	return wait_for_libcs(self, s);
}

FZ_EXPORT int sem_trywait(sem_t *s)
{
	struct fz_sem *sem = ours(s);

	fz_enter(FZ_SYM_sem_trywait);
	return sem ? (int)fz_leave(fz_sem_trywait(sem)) : fz_real.sem_trywait(s);
}

FZ_EXPORT int sem_timedwait(sem_t *s, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sem_timedwait);
	struct fz_sem *sem = ours(s);
	struct fz_blocked call;

	if (sem)
		return (int)fz_leave(wait_until(sem, CLOCK_REALTIME, *when));
	test_cancel(self, when);
	call = fz_block(self, 0);
	return FZ_REPEAT(&call, fz_real.sem_timedwait(s, when));
}

FZ_EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sem_clockwait);
	struct fz_sem *sem = ours(s);
	struct fz_blocked call;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return (int)fz_leave(-EINVAL);
	if (sem)
		return (int)fz_leave(wait_until(sem, clock, *when));
	test_cancel(self, when);
	call = fz_block(self, 0);
	return FZ_REPEAT(&call, fz_real.sem_clockwait(s, clock, when));
}

FZ_EXPORT int sem_post(sem_t *s)
{
	struct fz_sem *sem = ours(s);

	fz_enter(FZ_SYM_sem_post);
	return sem ? (int)fz_leave(fz_sem_post(sem)) : fz_real.sem_post(s);
}
