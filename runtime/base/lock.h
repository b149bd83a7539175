/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_LOCK_H
#define FZ_RUNTIME_BASE_LOCK_H

/*
 * runtime/base/lock.h - the runtime's own mutual exclusion between kernel threads.
 *
 * Three states on a private futex.  A lock is held for a few dozen instructions
 * (a bucket's of sync/lot.c: for each waiter that one call wakes or moves),
 * never across fz_park() and never while user code runs.  The holder has
 * fz_fiber.in_runtime set, so that no signal handler of the program can run
 * on top of the holder and ask for the lock again.
 *
 * Ranks: a holder takes only locks of ranks further down in FZ_RANKS.  Two locks of rank
 * BUCKET are taken in the order of their addresses.  With -DFZ_DEBUG the ranks are checked,
 * and that no lock is held at a switch; otherwise ranks take no memory and no time.
 */

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

/* Outermost first.  The table in runtime/DESIGN.md, "Locks", says what each rank guards. */
#define FZ_RANKS(RANK)	\
	RANK(RECORDS)	/* runtime/sched/carrier.c; its holder waits for all kernel threads */ \
	RANK(MASK)	/* runtime/signal/monitor_mask.c; its holder waits for the monitor */ \
	RANK(PROCESS)	/* signals that no thread has */ \
	RANK(REGISTRY)	\
	RANK(SLABS)	\
	RANK(BUCKET)	/* of the parking lot, of pins and of turns, and stripes of watches */ \
	RANK(HEAP)	\
	RANK(CARRIERS)	\
	RANK(QUEUE)	\
	RANK(KEPT)	\
	RANK(LIMIT)	\
	RANK(HINTS)	/* a holder of HINTS or of one that follows takes no other lock */ \
	RANK(POOL)	\
	RANK(ACTIONS)	\
	RANK(CPU_TIME)

enum fz_rank {
	FZ_RANK_UNSET,
#define FZ_RANK(name) FZ_RANK_##name,
	FZ_RANKS(FZ_RANK)
#undef FZ_RANK
};

struct fz_lock {
	_Atomic uint32_t word;	/* 0: free, 1: held, 2: held, and threads may wait for it */
#ifdef FZ_DEBUG
	enum fz_rank rank;
#endif
};

#ifdef FZ_DEBUG
#define FZ_LOCK(rank_) { .rank = (rank_) }

/* Ends the process if the calling thread must not wait for l while it holds the locks that it has. */
void fz_lock_check_order(const struct fz_lock *l);
void fz_lock_note_taken(const struct fz_lock *l);
void fz_lock_note_released(const struct fz_lock *l);

/*
 * Is the calling thread protected from handlers of the program, which could ask for the lock again?
 * NULL as long as there are no fibers.
 */
extern bool (*fz_lock_allowed)(void) FZ_HIDDEN;

/* Ends the process if the calling thread holds any lock. */
void fz_lock_check_none_held(const char *where);
#else
#define FZ_LOCK(rank_) { 0 }

static inline void fz_lock_check_order(const struct fz_lock *l)
{
	(void)l;
}

static inline void fz_lock_note_taken(const struct fz_lock *l)
{
	(void)l;
}

static inline void fz_lock_note_released(const struct fz_lock *l)
{
	(void)l;
}

static inline void fz_lock_check_none_held(const char *where)
{
	(void)where;
}
#endif

/* Make the lock free, whatever its state.  For a lock that is not static, or in a fork's child. */
static inline void fz_lock_init(struct fz_lock *l, enum fz_rank rank)
{
	(void)rank;
	*l = (struct fz_lock)FZ_LOCK(rank);
}

/* Take the lock if it is free.  Allowed for any rank, because this does not wait. */
static inline bool fz_lock_try(struct fz_lock *l)
{
	uint32_t free_ = 0;

	/* acquire: pairs with the release in fz_lock_release(). */
	if (!atomic_compare_exchange_strong_explicit(&l->word, &free_, 1, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	fz_lock_note_taken(l);
	return true;
}

static inline void fz_lock_acquire(struct fz_lock *l)
{
	fz_lock_check_order(l);
	if (FZ_LIKELY(fz_lock_try(l)))
		return;
	for (int spin = 0; spin < 100; spin++) {
		fz_cpu_relax();
		/* relaxed: a hint that another try may succeed. */
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
		    fz_lock_try(l))
			return;
	}
	/* acquire: as in fz_lock_try(). */
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		fz_sys_futex_wait(&l->word, 2, NULL);
	fz_lock_note_taken(l);
}

static inline void fz_lock_release(struct fz_lock *l)
{
	fz_lock_note_released(l);
	/* release: pairs with the acquires above. */
	if (FZ_UNLIKELY(atomic_exchange_explicit(&l->word, 0,
						 memory_order_release) == 2))
		fz_sys_futex_wake(&l->word, 1);
}

#endif
