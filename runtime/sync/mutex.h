/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_MUTEX_H
#define FZ_RUNTIME_SYNC_MUTEX_H

/*
 * runtime/sync/mutex.h - private mutexes in the storage of pthread_mutex_t.
 *
 * The words mean what they mean to glibc, so that glibc's initialisers, its destructor and
 * debuggers work: lock 0 free, 1 held, 2 held and waited for; owner is libc's tid; users counts
 * holders.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/sync/lot.h"

struct fz_mutex {
	_Atomic uint32_t lock;
	uint32_t count;			/* depth of a recursive mutex; written by the owner */
	_Atomic int owner;
	uint32_t users;			/* written by the owner */
	int kind;
};

enum fz_mutex_type {
	FZ_MUTEX_NORMAL,
	FZ_MUTEX_RECURSIVE,
	FZ_MUTEX_ERRORCHECK,
	FZ_MUTEX_ADAPTIVE,
};

/* Bits of kind: glibc's mutexes.  The word `lock` of a robust one has the kernel's tid of the owner. */
enum { FZ_MUTEX_ROBUST = 16, FZ_MUTEX_SHARED = 128 };

/* Robust, priority-inheriting, priority-protected and shared mutexes are libc's. */
static inline bool fz_mutex_is_ours(const struct fz_mutex *m)
{
	return (m->kind & 0xff) <= FZ_MUTEX_ADAPTIVE;
}

/*
 * Any thread.  Return 0, -EBUSY, -EDEADLK, -EAGAIN, -EPERM, -ETIMEDOUT, where pthread_mutex_*
 * return the positive number. fz_mutex_lock() may park, goes on waiting after a signal's handler,
 * and is no cancellation point.
 */
int fz_mutex_lock(struct fz_mutex *m, fz_nsec deadline);
int fz_mutex_trylock(struct fz_mutex *m);
int fz_mutex_unlock(struct fz_mutex *m);

/*
 * Around a wait on a condition variable: release all levels of a recursive mutex, and lock it again
 * with as many levels.  `users` still counts the waiter, so that libc's pthread_mutex_destroy finds the
 * mutex busy.
 */
int fz_mutex_unlock_whole(struct fz_mutex *m, uint32_t *ret_count);
void fz_mutex_lock_again(struct fz_mutex *m, uint32_t count);

/* May only the owner unlock the mutex, and does locking it again count or fail? */
static inline bool fz_mutex_knows_its_owner(const struct fz_mutex *m)
{
	enum fz_mutex_type type = m->kind & 0x7f;

	return type == FZ_MUTEX_RECURSIVE || type == FZ_MUTEX_ERRORCHECK;
}

/* Does the caller own the mutex, so that a lock is answered at once: with one level more, or an error?  Any thread. */
bool fz_mutex_is_locked_again(struct fz_mutex *m);

/* Steps of locking and unlocking: take the lock word; set the owner's words; release. */
static inline bool fz_mutex_take(struct fz_mutex *m)
{
	uint32_t free_ = 0;

	/* acquire: pairs with the release in fz_mutex_release(). */
	return atomic_compare_exchange_strong_explicit(&m->lock, &free_, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void fz_mutex_own(struct fz_mutex *m, int tid, uint32_t count)
{
	/* relaxed: only the owner compares it with its own tid. */
	atomic_store_explicit(&m->owner, tid, memory_order_relaxed);
	m->count = count;
}

/* Returns true if a thread may wait: then call fz_mutex_wake_next(). */
static inline bool fz_mutex_let_go(struct fz_mutex *m)
{
	/* relaxed: only the owner compares it with its own tid. */
	atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
	/* release: pairs with the acquire of the thread that takes the lock next. */
	return FZ_UNLIKELY(atomic_exchange_explicit(&m->lock, 0, memory_order_release) == 2);
}

/* The next owner may have freed m by now: only its address is used. */
static inline void fz_mutex_wake_next(struct fz_mutex *m)
{
	fz_lot_wake(&m->lock, 1);
}

static inline void fz_mutex_release(struct fz_mutex *m)
{
	if (fz_mutex_let_go(m))
		fz_mutex_wake_next(m);
}

/*
 * Lock a free mutex of any type for the caller, whose fz_self_tid() is tid.  Any thread.  Returns false if it is not
 * free: call fz_mutex_lock().
 */
static inline bool fz_mutex_lock_as(struct fz_mutex *m, int tid)
{
	if (FZ_UNLIKELY(!fz_mutex_take(m)))
		return false;
	fz_mutex_own(m, tid, 1);
	m->users++;
	return true;
}

/* fz_self_tid() if that needs no system call, otherwise 0. */
static inline int fz_mutex_known_tid(void)
{
	const int tid = fz_self()->thread.tid;

	/* relaxed: as in fz_self_tid(). */
	return FZ_LIKELY(tid || !fz_layout.tid) ?
		       tid : atomic_load_explicit(fz_tcb_tid(fz_tcb_get()), memory_order_relaxed);
}

static inline bool fz_mutex_lock_quickly(struct fz_mutex *m)
{
	return fz_mutex_lock_as(m, fz_self_tid());
}

/*
 * Unlock a normal or adaptive mutex.  Any thread.  Returns false for other types: call
 * fz_mutex_unlock().
 */
static inline bool fz_mutex_unlock_quickly(struct fz_mutex *m)
{
	if (FZ_UNLIKELY(fz_mutex_knows_its_owner(m)))
		return false;
	m->users--;
	fz_mutex_release(m);
	return true;
}

#endif
