/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/cond.c - private condition variables are ours, with any mutex; process-shared
 * condition variables are libc's (cond_shared.c). A wait is a cancellation point; the
 * cancellation is acted on with the mutex held, as POSIX requires.
 */
#include "preload/sync/cond.h"
#include "preload/gate.h"
#include "preload/time.h"
#include "runtime/base/host.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/cond.h"

_Static_assert(sizeof(struct fz_cond) <= sizeof(pthread_cond_t), "lives inside it");

/*
 * The offset, in bytes, at which libc's pthread_cond_init stores the flags. glibc 2.41 has
 * moved them; no program has the offset compiled in. Written by the constructor.
 */
static size_t flags_offset = offsetof(struct fz_cond, flags);

/*
 * Were the flags found? If not, each condition variable counts as private to the process, with
 * CLOCK_REALTIME. Written by the constructor.
 */
static bool flags_known = true;

static uint32_t flags(pthread_cond_t *c)
{
	_Atomic uint32_t *word = (_Atomic uint32_t *)(void *)((char *)c + flags_offset);

	if (FZ_UNLIKELY(!flags_known))
		return 0;
	/* relaxed: pthread_cond_init has set the flags; they do not change. */
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* Is the condition variable libc's: process-shared, or in a process whose locks are libc's? */
static bool shared(pthread_cond_t *c)
{
	return FZ_UNLIKELY(fz_locks_are_libcs) || flags(c) & FZ_COND_SHARED;
}

bool fz_cond_find_flags(void)
{
	const uint32_t wanted = FZ_COND_SHARED | FZ_COND_MONOTONIC;
	union {
		pthread_cond_t cond;
		uint32_t words[sizeof(pthread_cond_t) / sizeof(uint32_t)];
	} probe = { .words = { 0 } };
	pthread_condattr_t attr;
	unsigned found = 0, others = 0;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&probe.cond, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned i = 0; i < sizeof(probe) / sizeof(uint32_t); i++) {
		if (probe.words[i] == wanted)
			found = i;
		others += probe.words[i] != 0;
	}
	/* The flags must not lie in the words that our condition variables use. */
	flags_known = others == 1 && found * sizeof(uint32_t) >= offsetof(struct fz_cond, unused);
	if (flags_known)
		flags_offset = found * sizeof(uint32_t);
	return flags_known;
}

/*
 * Unlock libc's mutex for a wait, but keep the waiter counted as a user: pthread_mutex_destroy
 * then answers EBUSY, as in libc.
 */
static int unlock_as_user(pthread_mutex_t *m)
{
	/* relaxed: if this thread is the owner, this thread wrote the owner. */
	unsigned mine = m->__data.__owner == atomic_load_explicit(fz_tcb_tid(fz_tcb_get()),
								  memory_order_relaxed);
	int err;

	m->__data.__nusers += mine;
	err = fz_real.pthread_mutex_unlock(m);
	if (err)
		m->__data.__nusers -= mine;
	return err;
}

static int lock_as_user(pthread_mutex_t *m)
{
	int err = fz_real.pthread_mutex_lock(m);

	if (err == 0 || err == EOWNERDEAD)
		m->__data.__nusers--;
	return err;
}

/*
 * Wait with a mutex of libc's (robust and the like). Its owner is wired, so the wait blocks the
 * owner's own kernel thread only. This is a function of its own, so that a wait with a mutex of the
 * library's saves few registers.
 */
__attribute__((noinline)) static int wait_with_libcs_mutex(struct fz_cond *c, pthread_mutex_t *m,
							   fz_nsec deadline)
{
	struct fz_fiber *self = fz_self();
	uint32_t entered;
	int ret, err;

	/* When cleanup handlers run, the count of waiters must be right and the mutex locked. */
	fz_cancel_defer(self);
	entered = fz_cond_enter(c);
	ret = -unlock_as_user(m);
	if (ret == 0) {
		ret = fz_cond_sleep(c, entered, deadline);
		err = lock_as_user(m);
		/* An error of the mutex (EOWNERDEAD) matters more than a timeout. */
		if (err && ret != -ECANCELED)
			ret = -err;
	} else {
		fz_cond_leave(c);
	}
	fz_cancel_undefer(self);
	return ret;
}

/* Returns 0 or -errno. */
static int wait_common(pthread_cond_t *c, pthread_mutex_t *m, fz_nsec deadline)
{
	struct fz_mutex *mutex = (struct fz_mutex *)(void *)m;
	struct fz_cond *cond = (struct fz_cond *)(void *)c;
	int ret;

	if (fz_cancel_requested(fz_self()))
		fz_host.test_cancel();
	ret = FZ_LIKELY(fz_mutex_is_ours(mutex)) ? fz_cond_wait(cond, mutex, deadline) :
						   wait_with_libcs_mutex(cond, m, deadline);
	if (ret == -ECANCELED) {
		fz_host.test_cancel();
		/* Cancellation has been disabled meanwhile: report a spurious wake-up. */
		return 0;
	}
	return ret;
}

static int wait_until(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
		      struct timespec when)
{
	int ret;

	if (!fz_timespec_valid(&when))
		return -EINVAL;
	ret = wait_common(c, m, when.tv_sec < 0 ? 1 : fz_deadline_at(clock, &when));
	/* A clock that a library fakes was set back during the wait: report a spurious wake-up. */
	if (ret == -ETIMEDOUT && !fz_passed(clock, &when))
		return 0;
	return ret;
}

FZ_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_cond_wait);

	if (!shared(c))
		return fz_leave_pthread(wait_common(c, m, FZ_FOREVER));
	return fz_cond_wait_shared(FZ_COND_WAIT, self, c, m, 0, NULL);
}

FZ_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				     const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_cond_timedwait);

	if (!shared(c))
		return fz_leave_pthread(wait_until(
			c, m, flags(c) & FZ_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME, *when));
	return fz_cond_wait_shared(FZ_COND_TIMEDWAIT, self, c, m, 0, when);
}

FZ_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_cond_clockwait);

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return fz_leave_pthread(-EINVAL);
	if (!shared(c))
		return fz_leave_pthread(wait_until(c, m, clock, *when));
	return fz_cond_wait_shared(FZ_COND_CLOCKWAIT, self, c, m, clock, when);
}

FZ_EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	struct fz_cond *cond = (struct fz_cond *)(void *)c;
	const bool ours = FZ_LIKELY(!shared(c));

	if (ours && fz_cond_is_idle(cond))
		return 0;
	fz_enter(FZ_SYM_pthread_cond_signal);
	if (!ours)
		return fz_cond_wake_shared(c, fz_real.pthread_cond_signal);
	fz_cond_wake(cond, 1);
	return 0;
}

FZ_EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	struct fz_cond *cond = (struct fz_cond *)(void *)c;
	const bool ours = FZ_LIKELY(!shared(c));

	if (ours && fz_cond_is_idle(cond))
		return 0;
	fz_enter(FZ_SYM_pthread_cond_broadcast);
	if (!ours)
		return fz_cond_wake_shared(c, fz_real.pthread_cond_broadcast);
	fz_cond_wake(cond, UINT32_MAX);
	return 0;
}

FZ_EXPORT int pthread_cond_destroy(pthread_cond_t *c)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_cond_destroy);

	if (!shared(c)) {
		fz_cond_destroy((struct fz_cond *)(void *)c);
		return 0;
	}
	if (self)
		fz_announce(self);
	return fz_real.pthread_cond_destroy(c);
}
