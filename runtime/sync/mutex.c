/* SPDX-License-Identifier: MIT */
#include "runtime/sync/mutex.h"

#include <asm/errno.h>

#include "runtime/sync/lot.h"

static bool take(struct fz_mutex *m)
{
	uint32_t free_ = 0;

	/* acquire: pairs with the release in fz_mutex_unlock(). */
	return atomic_compare_exchange_strong_explicit(&m->lock, &free_, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static bool held_by_me(struct fz_mutex *m, int tid)
{
	/* relaxed: if it is us, we wrote it; if not, any value differs. */
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == tid;
}

static void set_owner(struct fz_mutex *m, int tid)
{
	atomic_store_explicit(&m->owner, tid, memory_order_relaxed);
	m->users++;
}

/* A holder that asks again.  Returns -1 if it is to wait like anybody else. */
static int relock(struct fz_mutex *m, int tid)
{
	enum fz_mutex_type type = m->kind & 0x7f;

	if ((type != FZ_MUTEX_RECURSIVE && type != FZ_MUTEX_ERRORCHECK) || !held_by_me(m, tid))
		return -1;
	if (type == FZ_MUTEX_ERRORCHECK)
		return EDEADLK;
	if (m->count == UINT32_MAX)
		return EAGAIN;
	m->count++;
	return 0;
}

static void locked_once(struct fz_mutex *m, int tid)
{
	set_owner(m, tid);
	m->count = 1;
}

/* Apart, so that the quick way needs no registers saved. */
static __attribute__((noinline)) int lock_slowly(struct fz_mutex *m, int tid, fz_nsec deadline)
{
	int err = relock(m, tid);

	if (err >= 0)
		return err;
	if (fz_lot_lock(&m->lock, deadline))
		return ETIMEDOUT;
	locked_once(m, tid);
	return 0;
}

int fz_mutex_lock(struct fz_mutex *m, fz_nsec deadline)
{
	int tid = fz_self_tid();

	if (FZ_UNLIKELY(!take(m)))
		return lock_slowly(m, tid, deadline);
	locked_once(m, tid);
	return 0;
}

int fz_mutex_trylock(struct fz_mutex *m)
{
	int tid = fz_self_tid();

	if (!take(m)) {
		/* Only a recursive one counts; the others are busy. */
		if ((m->kind & 0x7f) == FZ_MUTEX_RECURSIVE && held_by_me(m, tid))
			return relock(m, tid);
		return EBUSY;
	}
	locked_once(m, tid);
	return 0;
}

static inline __attribute__((always_inline)) void release(struct fz_mutex *m)
{
	atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
	/* release: pairs with the acquires of who takes it next. */
	if (FZ_UNLIKELY(atomic_exchange_explicit(&m->lock, 0, memory_order_release) == 2))
		/* m may be gone by now: only its address is used. */
		fz_lot_wake(&m->lock, 1);
}

static bool knows_its_owner(const struct fz_mutex *m)
{
	enum fz_mutex_type type = m->kind & 0x7f;

	return type == FZ_MUTEX_RECURSIVE || type == FZ_MUTEX_ERRORCHECK;
}

int fz_mutex_unlock(struct fz_mutex *m)
{
	if (knows_its_owner(m)) {
		if (!held_by_me(m, fz_self_tid()))
			return EPERM;
		if ((m->kind & 0x7f) == FZ_MUTEX_RECURSIVE && --m->count)
			return 0;
	}
	m->users--;
	release(m);
	return 0;
}

int fz_mutex_unlock_whole(struct fz_mutex *m, uint32_t *ret_count)
{
	if (knows_its_owner(m) && !held_by_me(m, fz_self_tid()))
		return EPERM;
	*ret_count = m->count;
	release(m);
	return 0;
}

void fz_mutex_lock_again(struct fz_mutex *m, uint32_t count)
{
	if (FZ_UNLIKELY(!take(m)))
		fz_lot_lock(&m->lock, FZ_FOREVER);
	/* relaxed: only its own thread compares it. */
	atomic_store_explicit(&m->owner, fz_self_tid(), memory_order_relaxed);
	m->count = count;
}
