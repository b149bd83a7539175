/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/rwlock.c - private reader-writer locks are ours, also in native threads.
 * Process-shared ones are libc's: readers announce their wait; writers are wired, since libc
 * recognises the writer by a tid that no other process may have. libc's init, destroy and
 * attribute functions serve for all locks.
 */
#include "preload/gate.h"
#include "preload/time.h"
#include "runtime/fiber/wire.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

_Static_assert(sizeof(struct fz_rwlock) <= sizeof(pthread_rwlock_t), "lives inside it");
_Static_assert(offsetof(struct fz_rwlock, readers) ==
		       offsetof(pthread_rwlock_t, __data.__readers) &&
	       offsetof(struct fz_rwlock, writers) ==
		       offsetof(pthread_rwlock_t, __data.__writers) &&
	       offsetof(struct fz_rwlock, cur_writer) ==
		       offsetof(pthread_rwlock_t, __data.__cur_writer) &&
	       offsetof(struct fz_rwlock, shared) ==
		       offsetof(pthread_rwlock_t, __data.__shared) &&
	       offsetof(struct fz_rwlock, kind) == offsetof(pthread_rwlock_t, __data.__flags),
	       "glibc's words");

static struct fz_rwlock *ours(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = (struct fz_rwlock *)(void *)lock;

	return FZ_LIKELY(!l->shared && !fz_locks_are_libcs) ? l : NULL;
}

/* Slow paths are functions of their own, so that the fast paths need not save registers. */
static __attribute__((noinline)) int read_slowly(struct fz_rwlock *l, bool counted,
						  const void *caller)
{
	if (!counted && fz_rwlock_read_quickly(l))
		return 0;
	fz_count_slow(FZ_SYM_pthread_rwlock_rdlock, caller);
	if (!counted)
		return fz_leave_pthread(fz_rwlock_read(l, FZ_FOREVER));
	fz_rwlock_await_read_phase(l);
	return 0;
}

static __attribute__((noinline)) int write_slowly(struct fz_rwlock *l, const void *caller)
{
	fz_count_slow(FZ_SYM_pthread_rwlock_wrlock, caller);
	return fz_leave_pthread(fz_rwlock_write(l, FZ_FOREVER));
}

static __attribute__((noinline)) int read_shared(struct fz_fiber *self, pthread_rwlock_t *lock)
{
	if (self) {
		int err = fz_real.pthread_rwlock_tryrdlock(lock);

		if (err != EBUSY)
			return err;
		fz_announce(self);
	}
	return fz_leave_shared(self, fz_real.pthread_rwlock_rdlock(lock));
}

static __attribute__((noinline)) int write_shared(struct fz_fiber *self, pthread_rwlock_t *lock)
{
	if (self)
		fz_fiber_wire_for(self, "a lock shared with other processes");
	return fz_real.pthread_rwlock_wrlock(lock);
}

FZ_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = ours(lock);
	bool counted;

	if (FZ_UNLIKELY(!l))
		return read_shared(fz_enter(FZ_SYM_pthread_rwlock_rdlock), lock);
	counted = fz_rwlock_may_count(l);
	return FZ_LIKELY(counted && fz_rwlock_count(l)) ?
		       0 : read_slowly(l, counted, __builtin_return_address(0));
}
FZ_EXPORT_ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);

FZ_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = ours(lock);

	if (FZ_UNLIKELY(!l))
		return write_shared(fz_enter(FZ_SYM_pthread_rwlock_wrlock), lock);
	return FZ_LIKELY(fz_rwlock_write_quickly(l)) ?
		       0 : write_slowly(l, __builtin_return_address(0));
}
FZ_EXPORT_ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);

FZ_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = ours(lock);

	if (FZ_LIKELY(l != NULL))
		return fz_rwlock_read_quickly(l) ? 0 : fz_leave_pthread(fz_rwlock_read(l, 0));
	fz_enter(FZ_SYM_pthread_rwlock_tryrdlock);
	return fz_real.pthread_rwlock_tryrdlock(lock);
}
FZ_EXPORT_ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);

FZ_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = ours(lock);
	struct fz_fiber *self;

	if (FZ_LIKELY(l != NULL))
		return fz_leave_pthread(fz_rwlock_write(l, 0));
	self = fz_enter(FZ_SYM_pthread_rwlock_trywrlock);
	if (self)
		fz_fiber_wire_for(self, "a lock shared with other processes");
	return fz_real.pthread_rwlock_trywrlock(lock);
}
FZ_EXPORT_ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);

FZ_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	struct fz_rwlock *l = ours(lock);

	if (FZ_UNLIKELY(!l)) {
		fz_enter(FZ_SYM_pthread_rwlock_unlock);
		return fz_real.pthread_rwlock_unlock(lock);
	}
	if (!fz_rwlock_read_unlock_quickly(l))
		fz_rwlock_unlock(l);
	return 0;
}
FZ_EXPORT_ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);

/* The time is validated even if the lock is free, as in glibc. */
static int lock_until(struct fz_rwlock *l, int (*lock)(struct fz_rwlock *, fz_nsec),
		      clockid_t clock, const struct timespec *when)
{
	struct timespec until;
	int err;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return fz_leave_pthread(-EINVAL);
	until = *when;
	if (!fz_timespec_valid(&until))
		return fz_leave_pthread(-EINVAL);
	err = lock(l, 0);
	while (err == -EBUSY || (err == -ETIMEDOUT && !fz_passed(clock, &until)))
		err = lock(l, until.tv_sec < 0 ? 1 : fz_deadline_at(clock, &until));
	return fz_leave_pthread(err);
}

FZ_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_timedrdlock);
	struct fz_rwlock *l = ours(lock);

	if (l)
		return lock_until(l, fz_rwlock_read, CLOCK_REALTIME, when);
	if (self)
		fz_announce(self);
	return fz_leave_shared(self, fz_real.pthread_rwlock_timedrdlock(lock, when));
}

FZ_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_timedwrlock);
	struct fz_rwlock *l = ours(lock);

	if (l)
		return lock_until(l, fz_rwlock_write, CLOCK_REALTIME, when);
	if (self)
		fz_fiber_wire_for(self, "a lock shared with other processes");
	return fz_real.pthread_rwlock_timedwrlock(lock, when);
}

FZ_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
					 const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_clockrdlock);
	struct fz_rwlock *l = ours(lock);

	if (l)
		return lock_until(l, fz_rwlock_read, clock, when);
	if (self)
		fz_announce(self);
	return fz_leave_shared(self, fz_real.pthread_rwlock_clockrdlock(lock, clock, when));
}

FZ_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
					 const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_rwlock_clockwrlock);
	struct fz_rwlock *l = ours(lock);

	if (l)
		return lock_until(l, fz_rwlock_write, clock, when);
	if (self)
		fz_fiber_wire_for(self, "a lock shared with other processes");
	return fz_real.pthread_rwlock_clockwrlock(lock, clock, when);
}
