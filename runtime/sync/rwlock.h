/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_RWLOCK_H
#define FZ_RUNTIME_SYNC_RWLOCK_H

/*
 * runtime/sync/rwlock.h - private reader-writer locks in the storage of pthread_rwlock_t.
 *
 * The words are glibc's, and debuggers can read them as glibc's.  All state that matters changes
 * in one 64-bit step.  "Reserved" means promised to a waiting writer that has not taken the lock yet:
 * WRPHASE without WRLOCKED.
 *
 *	readers = count << 3 | RWAITING 4 | WRLOCKED 2 | WRPHASE 1
 *	writers = number of writers that wait
 *
 *	phase             holder              count is of        after unlock
 *	0                 the readers; none,  the holders        last reader out: reserved
 *	                  if count is 0                          if writers, else free
 *	WRPHASE|WRLOCKED  cur_writer          waiting readers    0 or, if writers go
 *	                                                         first, reserved
 *	WRPHASE           reserved for a      waiting readers    a writer takes it
 *	                  waiting writer
 *
 * So a waiting reader is counted before it has the lock, and has the lock as soon as WRPHASE is
 * cleared; no other thread can take the lock first.  RWAITING: with PREFER_WRITER_NONRECURSIVE,
 * readers sleep behind waiting writers and are not counted.
 */

#include "runtime/fiber/fiber.h"

struct fz_rwlock {
	union {
		_Atomic uint64_t both;
		struct {	/* little endian */
			_Atomic uint32_t readers;
			_Atomic uint32_t writers;
		};
	};
	/* Only the addresses of these two are used, as keys in the lot. */
	uint32_t wrphase_futex;		/* key of waiting readers */
	uint32_t writers_futex;		/* key of waiting writers */
	uint32_t unused1[2];
	_Atomic int cur_writer;		/* libc's tid of the writer, or 0; written by the writer */
	int shared;
	uint64_t unused2[2];
	uint32_t kind;			/* enum fz_rwlock_kind; const */
};

enum fz_rwlock_kind {
	FZ_RWLOCK_PREFER_READER,
	FZ_RWLOCK_PREFER_WRITER,	/* readers may lock again a lock that they hold */
	FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE,
};

/*
 * Any thread.  deadline 0: only try.  May park; the wait goes on after a signal's handler; no
 * cancellation point.  Returns 0, -EBUSY, -EDEADLK, -EAGAIN, -ETIMEDOUT.
 */
int fz_rwlock_read(struct fz_rwlock *l, fz_nsec deadline);
int fz_rwlock_write(struct fz_rwlock *l, fz_nsec deadline);

/* Unlock what the caller holds, for reading or for writing. */
void fz_rwlock_unlock(struct fz_rwlock *l);

/*
 * Lock for reading in one step, if only readers hold the lock, and nobody waits.  Returns false if
 * not, or if there are too many readers: call fz_rwlock_read().
 */
static inline bool fz_rwlock_read_quickly(struct fz_rwlock *l)
{
	const uint64_t one = 8, most = 0x7ffffff0;
	/* relaxed: the compare-and-swap orders. */
	uint64_t s = atomic_load_explicit(&l->both, memory_order_relaxed);

	/* acquire: pairs with the release of the last writer's unlock. */
	return FZ_LIKELY(!(s & (one - 1)) && s < most) &&
	       atomic_compare_exchange_strong_explicit(&l->both, &s, s + one,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * fz_rwlock_read(l, FZ_FOREVER) in steps: an addition is cheaper than a compare-and-swap, and
 * right in any phase.  If fz_rwlock_may_count() returns false, call fz_rwlock_read() instead.  If
 * fz_rwlock_count() returns true, the caller has the lock; else it must call
 * fz_rwlock_await_read_phase(), and has the lock then.
 */
static inline bool fz_rwlock_may_count(const struct fz_rwlock *l)
{
	const uint64_t states = 7, many = 0x40000000;
	/* relaxed: the addition orders. */
	uint64_t s = atomic_load_explicit(&l->both, memory_order_relaxed);

	return FZ_LIKELY(!(s & states) && s <= many &&
			 l->kind != FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE);
}

static inline bool fz_rwlock_count(struct fz_rwlock *l)
{
	const uint64_t one = 8, write_phase = 1;

	/* acquire: pairs with the release of the last writer's unlock. */
	return FZ_LIKELY(!(atomic_fetch_add_explicit(&l->both, one, memory_order_acquire) &
			   write_phase));
}

void fz_rwlock_await_read_phase(struct fz_rwlock *l);

/*
 * Lock for writing in one step, if no thread holds the lock or waits.  Returns false if not: call
 * fz_rwlock_write().
 */
static inline bool fz_rwlock_write_quickly(struct fz_rwlock *l)
{
	const uint64_t write_locked = 3;
	uint64_t free_ = 0;

	/* acquire: pairs with the release of the last holder's unlock. */
	if (FZ_UNLIKELY(!atomic_compare_exchange_strong_explicit(&l->both, &free_, write_locked,
								 memory_order_acquire,
								 memory_order_relaxed)))
		return false;
	/* relaxed: only the writer compares it with its own tid. */
	atomic_store_explicit(&l->cur_writer, fz_self_tid(), memory_order_relaxed);
	return true;
}

static inline bool fz_rwlock_read_unlock_quickly(struct fz_rwlock *l)
{
	const uint64_t one = 8, most = 0x7ffffff8;
	uint64_t s = atomic_load_explicit(&l->both, memory_order_relaxed);

	/* release: pairs with the acquire of the next writer. */
	return FZ_LIKELY(!(s & (one - 1)) && s && s <= most) &&
	       atomic_compare_exchange_strong_explicit(&l->both, &s, s - one,
						       memory_order_release,
						       memory_order_relaxed);
}

#endif
