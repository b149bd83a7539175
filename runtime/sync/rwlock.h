/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_RWLOCK_H
#define FZ_RUNTIME_SYNC_RWLOCK_H

/*
 * runtime/sync/rwlock.h - private reader-writer locks in the storage of pthread_rwlock_t.
 *
 * The words are glibc's, and mean to a debugger what they mean there.  All that
 * matters changes in one 64-bit step:
 *
 *	readers = count << 3 | RWAITING 4 | WRLOCKED 2 | WRPHASE 1
 *	writers = how many wait for their turn
 *
 *	phase             who has it          readers counts     next
 *	0                 the readers; none,  who has it         last one out: reserved
 *	                  if count is 0                          if writers, else free
 *	WRPHASE|WRLOCKED  cur_writer          who waits for it   0 or, if writers go
 *	                                                         first, reserved
 *	WRPHASE           reserved for one    likewise           a writer takes it
 *	                  of the writers
 *
 * So readers that wait are counted beforehand, and have it at the moment in which
 * WRPHASE goes; no reader comes between.  RWAITING: with
 * PREFER_WRITER_NONRECURSIVE, readers sleep uncounted behind waiting writers.
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
	/* Only their addresses are used, as keys of those who sleep. */
	uint32_t wrphase_futex;		/* readers */
	uint32_t writers_futex;
	uint32_t unused1[2];
	_Atomic int cur_writer;		/* libc's tid; the writer's */
	int shared;
	uint64_t unused2[2];
	uint32_t kind;			/* enum fz_rwlock_kind; const */
};

enum fz_rwlock_kind {
	FZ_RWLOCK_PREFER_READER,
	FZ_RWLOCK_PREFER_WRITER,	/* readers may lock again what they hold */
	FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE,
};

/*
 * Any thread.  deadline 0 only tries.  May park; handles signals without ending,
 * is no cancellation point.  Returns 0 or a positive error number as
 * pthread_rwlock_* do: EBUSY, EDEADLK, EAGAIN, ETIMEDOUT.
 */
int fz_rwlock_read(struct fz_rwlock *l, fz_nsec deadline);
int fz_rwlock_write(struct fz_rwlock *l, fz_nsec deadline);

/* What the caller has, for reading or for writing. */
void fz_rwlock_unlock(struct fz_rwlock *l);

/*
 * Only readers have it, fewer than can be, and nobody waits: one step.  Returns
 * false if it is for the functions above.
 */
static inline bool fz_rwlock_read_quickly(struct fz_rwlock *l)
{
	const uint64_t one = 8, most = 0x7ffffff0;
	/* relaxed: the exchange orders. */
	uint64_t s = atomic_load_explicit(&l->both, memory_order_relaxed);

	/* acquire: pairs with the release of the last writer. */
	return FZ_LIKELY(!(s & (one - 1)) && s < most) &&
	       atomic_compare_exchange_strong_explicit(&l->both, &s, s + one,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/* The second half of fz_rwlock_read(l, FZ_FOREVER), by one that is counted. */
int fz_rwlock_await_read_phase(struct fz_rwlock *l);

/* The same for whoever waits: an addition is cheaper, and right in any phase. */
static inline int fz_rwlock_read_forever(struct fz_rwlock *l)
{
	const uint64_t one = 8, many = 0x40000000;
	uint64_t s = atomic_load_explicit(&l->both, memory_order_relaxed);

	if (FZ_UNLIKELY(s & (one - 1) || s > many ||
			l->kind == FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE))
		return fz_rwlock_read(l, FZ_FOREVER);
	/* acquire: as above. */
	s = atomic_fetch_add_explicit(&l->both, one, memory_order_acquire);
	return FZ_LIKELY(!(s & 1)) ? 0 : fz_rwlock_await_read_phase(l);
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
