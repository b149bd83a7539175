/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_MUTEX_H
#define FZ_RUNTIME_SYNC_MUTEX_H

/*
 * runtime/sync/mutex.h - private mutexes in the storage of pthread_mutex_t.
 *
 * The words mean what they mean to glibc, so that its initialisers, destructor
 * and debuggers agree with us: lock 0 free, 1 held, 2 held and waited for; owner
 * is libc's tid; users counts holders.
 */

#include "runtime/fiber/fiber.h"

struct fz_mutex {
	_Atomic uint32_t lock;
	uint32_t count;			/* of a recursive mutex; the owner's */
	_Atomic int owner;
	uint32_t users;			/* the owner's */
	int kind;
};

enum fz_mutex_type {
	FZ_MUTEX_NORMAL,
	FZ_MUTEX_RECURSIVE,
	FZ_MUTEX_ERRORCHECK,
	FZ_MUTEX_ADAPTIVE,
};

/* Robust, priority-inheriting, priority-protected and shared ones are libc's. */
static inline bool fz_mutex_is_ours(const struct fz_mutex *m)
{
	return (m->kind & 0xff) <= FZ_MUTEX_ADAPTIVE;
}

/*
 * Any thread.  Return 0 or a positive error number as pthread_mutex_* do.  lock
 * may park, handles signals without ending, and is no cancellation point.
 */
int fz_mutex_lock(struct fz_mutex *m, fz_nsec deadline);
int fz_mutex_trylock(struct fz_mutex *m);
int fz_mutex_unlock(struct fz_mutex *m);

/*
 * Around a wait: a recursive one is released whole, and locked as often again.  The
 * waiter remains one of its users, by which libc's destroy finds it busy.
 */
int fz_mutex_unlock_whole(struct fz_mutex *m, uint32_t *ret_count);
void fz_mutex_lock_again(struct fz_mutex *m, uint32_t count);

#endif
