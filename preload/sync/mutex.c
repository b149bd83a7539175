/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/mutex.c - private mutexes are ours, also in native threads. Robust,
 * priority-inheriting, priority-protected and process-shared mutexes are libc's; they wire the
 * fiber, because the kernel must know their owner as a thread. Exception: process-shared
 * mutexes whose owner nobody reads (is_plain_shared); a fiber that finds one locked announces
 * its wait. libc's init, destroy and attribute functions serve for all mutexes: the words mean
 * the same (runtime/sync/mutex.h).
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/modules.h"
#include "preload/time.h"
#include "runtime/fiber/wire.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/mutex.h"

_Static_assert(sizeof(struct fz_mutex) <= sizeof(pthread_mutex_t), "lives inside it");
_Static_assert(offsetof(struct fz_mutex, lock) == offsetof(pthread_mutex_t, __data.__lock) &&
	       offsetof(struct fz_mutex, count) == offsetof(pthread_mutex_t, __data.__count) &&
	       offsetof(struct fz_mutex, owner) == offsetof(pthread_mutex_t, __data.__owner) &&
	       offsetof(struct fz_mutex, users) == offsetof(pthread_mutex_t, __data.__nusers) &&
	       offsetof(struct fz_mutex, kind) == offsetof(pthread_mutex_t, __data.__kind),
	       "glibc's words");

static struct fz_mutex *ours(pthread_mutex_t *m)
{
	struct fz_mutex *mutex = (struct fz_mutex *)(void *)m;

	return fz_mutex_is_ours(mutex) && FZ_LIKELY(!fz_locks_are_libcs) ? mutex : NULL;
}

/*
 * Wire the fiber before libc's code locks the mutex, because the kernel must know the owner. A
 * main thread that locks such a mutex while dormant must not become a fiber later, with the
 * lock held.
 */
static void wire_for(struct fz_fiber *self, pthread_mutex_t *m)
{
	const int known = 0x3ff;	/* bits of __kind; with others (a destroyed mutex) libc returns EINVAL */

	if (m->__data.__kind & ~known)
		return;
	if (self)
		fz_fiber_wire_for(self, "a robust or priority-inheriting mutex");
	else if (!fz_runtime_runs())
		fz_wire_main_at_start();
}

/* glibc's bits of __kind. A mutex is "plain" if no bits are set but the type and lock elision. */
enum { KIND_TYPE = 3, KIND_SHARED = 128, KIND_ELISION = 0x300 };

/*
 * Process-shared, normal or adaptive, and nothing else: libc stores the owner and never reads
 * it. A mutex of another type compares the owner, and could take a thread of another process
 * for the caller, since each process has the same virtual thread ids.
 */
static bool is_plain_shared(const pthread_mutex_t *m)
{
	int type = m->__data.__kind & KIND_TYPE;

	return (m->__data.__kind & ~(KIND_TYPE | KIND_ELISION)) == KIND_SHARED &&
	       (type == PTHREAD_MUTEX_NORMAL || type == PTHREAD_MUTEX_ADAPTIVE_NP);
}

/*
 * Prepare for libc's own lock function. Returns false if the lock function need not be called
 * any more; *ret_err is then the result.
 */
static bool prepare_lock(struct fz_fiber *self, pthread_mutex_t *m, int *ret_err)
{
	if (!is_plain_shared(m)) {
		wire_for(self, m);
		return true;
	}
	if (!self)
		return true;
	*ret_err = fz_real.pthread_mutex_trylock(m);
	if (*ret_err != EBUSY)
		return false;
	fz_announce(self);
	return true;
}

/* Slow paths are functions of their own, called last, so that the fast paths need not save registers. */
static int lock_slowly(struct fz_mutex *m, const void *caller)
{
	const bool behind = fz_modules_let_go(m);
	int err;

	/* The dynamic loader locks its recursive mutex again and again. */
	if (FZ_UNLIKELY(fz_stats_wanted) && !fz_mutex_is_locked_again(m))
		fz_count_slow(FZ_SYM_pthread_mutex_lock, caller);
	err = fz_mutex_lock(m, FZ_FOREVER);
	if (FZ_UNLIKELY(behind))
		fz_modules_lock();
	return fz_leave_pthread(err);
}

/* Not ours, or not free, or its next owner's tid is not known yet. */
static __attribute__((noinline)) int lock_any(enum fz_symbol symbol, pthread_mutex_t *m, const void *caller)
{
	struct fz_mutex *mutex = ours(m);
	struct fz_fiber *self;
	int err;

	if (mutex)
		return !fz_mutex_known_tid() && fz_mutex_lock_quickly(mutex) ? 0 : lock_slowly(mutex, caller);
	self = fz_enter_from(symbol, caller);
	return prepare_lock(self, m, &err) ? fz_leave_shared(self, fz_real.pthread_mutex_lock(m)) : err;
}

FZ_EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	struct fz_mutex *mutex = ours(m);
	const int tid = fz_mutex_known_tid();

	return FZ_LIKELY(mutex && tid && fz_mutex_lock_as(mutex, tid)) ?
		       0 : lock_any(FZ_SYM_pthread_mutex_lock, m, __builtin_return_address(0));
}
FZ_EXPORT_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);

FZ_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	struct fz_mutex *mutex = ours(m);
	struct fz_fiber *self;

	if (FZ_LIKELY(mutex != NULL))
		return fz_leave_pthread(fz_mutex_trylock(mutex));
	self = fz_enter(FZ_SYM_pthread_mutex_trylock);
	if (!is_plain_shared(m))
		wire_for(self, m);
	return fz_real.pthread_mutex_trylock(m);
}
FZ_EXPORT_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);

static __attribute__((noinline)) int unlock_any(enum fz_symbol symbol, pthread_mutex_t *m, const void *caller)
{
	struct fz_mutex *mutex = ours(m);

	if (mutex)
		return fz_leave_pthread(fz_mutex_unlock(mutex));
	fz_enter_from(symbol, caller);
	return fz_real.pthread_mutex_unlock(m);
}

static __attribute__((noinline)) int wake_next(struct fz_mutex *m)
{
	fz_mutex_wake_next(m);
	return 0;
}

FZ_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	struct fz_mutex *mutex = ours(m);

	if (FZ_UNLIKELY(!mutex || fz_mutex_knows_its_owner(mutex)))
		return unlock_any(FZ_SYM_pthread_mutex_unlock, m, __builtin_return_address(0));
	mutex->users--;
	return fz_mutex_let_go(mutex) ? wake_next(mutex) : 0;
}
FZ_EXPORT_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* The time is validated only if the mutex is not free (POSIX). */
static int lock_until(struct fz_mutex *mutex, clockid_t clock, const struct timespec *when)
{
	struct timespec until;
	int err = fz_mutex_trylock(mutex);

	if (err != -EBUSY)
		return fz_leave_pthread(err);
	until = *when;
	if (!fz_timespec_valid(&until))
		return fz_leave_pthread(-EINVAL);
	do {
		err = fz_mutex_lock(mutex, until.tv_sec < 0 ? 1 : fz_deadline_at(clock, &until));
	} while (err == -ETIMEDOUT && !fz_passed(clock, &until));
	return fz_leave_pthread(err);
}

FZ_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *when)
{
	struct fz_mutex *mutex = ours(m);
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_mutex_timedlock);
	int err;

	if (mutex)
		return lock_until(mutex, CLOCK_REALTIME, when);
	return prepare_lock(self, m, &err) ?
		       fz_leave_shared(self, fz_real.pthread_mutex_timedlock(m, when)) : err;
}

FZ_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				      const struct timespec *when)
{
	struct fz_mutex *mutex = ours(m);
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_mutex_clocklock);
	int err;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return fz_leave_pthread(-EINVAL);
	if (mutex)
		return lock_until(mutex, clock, when);
	return prepare_lock(self, m, &err) ?
		       fz_leave_shared(self, fz_real.pthread_mutex_clocklock(m, clock, when)) : err;
}

/* libc locks the mutex to change its ceiling, and may wait for the owner. */
FZ_EXPORT int pthread_mutex_setprioceiling(pthread_mutex_t *restrict m, int ceiling,
					   int *restrict old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_mutex_setprioceiling);

	if (self && !ours(m))
		fz_announce(self);
	return fz_real.pthread_mutex_setprioceiling(m, ceiling, old);
}
