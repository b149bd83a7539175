/* SPDX-License-Identifier: MIT */
#include "runtime/sync/mutex.h"

#include <asm/errno.h>

static bool held_by_me(struct fz_mutex *m)
{
	/*
	 * relaxed: if the caller is the owner, it wrote the value itself; else every value it can
	 * read differs.
	 */
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == fz_self_tid();
}

static bool is_recursive(const struct fz_mutex *m)
{
	return (m->kind & 0x7f) == FZ_MUTEX_RECURSIVE;
}

bool fz_mutex_is_locked_again(struct fz_mutex *m)
{
	return fz_mutex_knows_its_owner(m) && held_by_me(m);
}

/* Lock again by the owner.  Returns -EBUSY if the caller must wait like any other thread. */
static int relock(struct fz_mutex *m)
{
	if (!fz_mutex_is_locked_again(m))
		return -EBUSY;
	if (!is_recursive(m))
		return -EDEADLK;
	if (m->count == UINT32_MAX)
		return -EAGAIN;
	m->count++;
	return 0;
}

int fz_mutex_lock(struct fz_mutex *m, fz_nsec deadline)
{
	int err = fz_mutex_lock_quickly(m) ? 0 : relock(m);

	if (err != -EBUSY)
		return err;
	err = fz_lot_lock(&m->lock, FZ_FOR_MUTEX, deadline);
	if (err)
		return err;
	fz_mutex_own(m, fz_self_tid(), 1);
	m->users++;
	return 0;
}

int fz_mutex_trylock(struct fz_mutex *m)
{
	if (FZ_LIKELY(fz_mutex_lock_quickly(m)))
		return 0;
	/* trylock counts a recursive mutex again; every other type is busy, also for its owner. */
	return is_recursive(m) ? relock(m) : -EBUSY;
}

int fz_mutex_unlock(struct fz_mutex *m)
{
	if (fz_mutex_unlock_quickly(m))
		return 0;
	if (!held_by_me(m))
		return -EPERM;
	if (is_recursive(m) && --m->count)
		return 0;
	m->users--;
	fz_mutex_release(m);
	return 0;
}

int fz_mutex_unlock_whole(struct fz_mutex *m, uint32_t *ret_count)
{
	if (fz_mutex_knows_its_owner(m) && !held_by_me(m))
		return -EPERM;
	*ret_count = m->count;
	fz_mutex_release(m);
	return 0;
}

void fz_mutex_lock_again(struct fz_mutex *m, uint32_t count)
{
	if (FZ_UNLIKELY(!fz_mutex_take(m)))
		fz_lot_lock(&m->lock, FZ_FOR_MUTEX, FZ_FOREVER);
	fz_mutex_own(m, fz_self_tid(), count);
}
