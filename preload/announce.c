/* SPDX-License-Identifier: MIT */
/*
 * preload/announce.c - locks that are still libc's: the processor is handed off
 * before they block the kernel thread.
 */
#include "preload/gate.h"
#include "runtime/sched.h"

FZ_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_barrier_wait);

	if (self)
		fz_announce(self);
	return fz_real.pthread_barrier_wait(barrier);
}

FZ_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_rdlock);

	if (self) {
		int err = pthread_rwlock_tryrdlock(lock);

		if (err != EBUSY)
			return err;
		fz_announce(self);
	}
	return fz_real.pthread_rwlock_rdlock(lock);
}

FZ_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_wrlock);

	if (self) {
		int err = pthread_rwlock_trywrlock(lock);

		if (err != EBUSY)
			return err;
		fz_announce(self);
	}
	return fz_real.pthread_rwlock_wrlock(lock);
}

FZ_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_timedrdlock);

	if (self)
		fz_announce(self);
	return fz_real.pthread_rwlock_timedrdlock(lock, when);
}

FZ_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_timedwrlock);

	if (self)
		fz_announce(self);
	return fz_real.pthread_rwlock_timedwrlock(lock, when);
}

FZ_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
					 const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_clockrdlock);

	if (self)
		fz_announce(self);
	return fz_real.pthread_rwlock_clockrdlock(lock, clock, when);
}

FZ_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
					 const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_clockwrlock);

	if (self)
		fz_announce(self);
	return fz_real.pthread_rwlock_clockwrlock(lock, clock, when);
}
