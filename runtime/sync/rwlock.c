/* SPDX-License-Identifier: MIT */
#include "runtime/sync/rwlock.h"

#include <asm/errno.h>

#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

#define WRPHASE 1u
#define WRLOCKED 2u
#define RWAITING 4u
#define READER 8u
#define READERS_MASK 0xfffffff8u
#define READERS_MAX 0x7ffffff8u		/* as in glibc: one more gets EAGAIN */
#define WRITER ((uint64_t)1 << 32)

static uint32_t readers(uint64_t s)
{
	return (uint32_t)s & READERS_MASK;
}

static bool has_writers(uint64_t s)
{
	return s >= WRITER;
}

static uint64_t look(const struct fz_rwlock *l)
{
	/* acquire: pairs with change() in the unlocks, if that has changed the phase. */
	return atomic_load_explicit(&l->both, memory_order_acquire);
}

/*
 * acq_rel: the next holder sees what all earlier holders did, readers too.  No wake-up gets lost: a
 * waiter is in the lot's queue when the thread that made a change wakes it, or has seen the change
 * under the lot's lock.
 */
static bool change(struct fz_rwlock *l, uint64_t *s, uint64_t to)
{
	return atomic_compare_exchange_weak_explicit(&l->both, s, to, memory_order_acq_rel,
						     memory_order_acquire);
}

static bool mine(const struct fz_rwlock *l)
{
	/*
	 * relaxed: if the caller is the writer, it wrote the value itself; else every value it can
	 * read differs.
	 */
	return atomic_load_explicit(&l->cur_writer, memory_order_relaxed) == fz_self_tid();
}

static void wake_readers(struct fz_rwlock *l)
{
	fz_lot_wake(&l->wrphase_futex, UINT32_MAX);
}

static void wake_a_writer(struct fz_rwlock *l)
{
	fz_lot_wake(&l->writers_futex, 1);
}

/*
 * The woken threads own the lock already, so every thread that asks for the lock must wait until they
 * have run; on one processor that costs two switches for each writer.  So let the woken threads run now.
 */
static void let_the_woken_run(void)
{
	fz_sched_give_way(fz_self());
}

/* ---- what waiters wait for; from the key to the lock ------------------- */

static bool write_phase(const void *key, uint32_t unused)
{
	(void)unused;
	return look(fz_container_of(key, const struct fz_rwlock, wrphase_futex)) & WRPHASE;
}

/* Must a reader that does not hold the lock let waiting writers go first? */
static bool writers_first(uint64_t s)
{
	return !(s & WRPHASE) && readers(s) && has_writers(s);
}

static bool behind_writers(const void *key, uint32_t unused)
{
	uint64_t s = look(fz_container_of(key, const struct fz_rwlock, wrphase_futex));

	(void)unused;
	return writers_first(s) && s & RWAITING;
}

static bool writer_may(uint64_t s)
{
	return !(s & WRLOCKED) && (s & WRPHASE || !readers(s));
}

static bool not_a_writers_turn(const void *key, uint32_t unused)
{
	(void)unused;
	return !writer_may(look(fz_container_of(key, const struct fz_rwlock, writers_futex)));
}

/* ---- reading ------------------------------------------------------------ */

/* Wait for the read phase.  The caller is already counted in `readers`. */
static int await_read_phase(struct fz_rwlock *l, fz_nsec deadline)
{
	uint64_t s;
	int ret;

	do {
		ret = fz_lot_wait_while(&l->wrphase_futex, write_phase, 0, deadline,
					FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_READ_LOCK));
		s = look(l);
		if (!(s & WRPHASE))
			return 0;
	} while (ret != -ETIMEDOUT);
	while (!change(l, &s, s - READER))
		/* The read phase has begun: the caller has the lock, in spite of the timeout. */
		if (!(s & WRPHASE))
			return 0;
	return -ETIMEDOUT;
}

void fz_rwlock_await_read_phase(struct fz_rwlock *l)
{
	await_read_phase(l, FZ_FOREVER);
}

static int await_writers(struct fz_rwlock *l, uint64_t s, fz_nsec deadline)
{
	while (!(s & RWAITING)) {
		if (change(l, &s, s | RWAITING))
			break;
		if (!writers_first(s))
			return 0;
	}
	/* After a timeout RWAITING stays set; the next unlock may then wake readers that are not there. */
	return fz_lot_wait_while(&l->wrphase_futex, behind_writers, 0, deadline,
				 FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_READ_LOCK)) == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

int fz_rwlock_read(struct fz_rwlock *l, fz_nsec deadline)
{
	uint64_t s = look(l);
	int err;

	if (FZ_UNLIKELY(s & WRLOCKED && mine(l)))
		return deadline ? -EDEADLK : -EBUSY;
	for (;;) {
		if (FZ_UNLIKELY(l->kind == FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE &&
				writers_first(s))) {
			if (!deadline)
				return -EBUSY;
			err = await_writers(l, s, deadline);
			if (err)
				return err;
			s = look(l);
			continue;
		}
		if (!deadline && s & WRPHASE)
			return -EBUSY;
		if (FZ_UNLIKELY(readers(s) == READERS_MAX))
			return -EAGAIN;
		if (FZ_LIKELY(change(l, &s, s + READER)))
			break;
	}
	return FZ_LIKELY(!(s & WRPHASE)) ? 0 : await_read_phase(l, deadline);
}

static void unlock_read(struct fz_rwlock *l)
{
	uint64_t s = look(l), to;

	do {
		to = s - READER;
		/*
		 * No thread holds the lock: an error of the program, which glibc does not detect
		 * either.
		 */
		if (FZ_UNLIKELY(!readers(s)))
			return;
		if (!readers(to)) {
			to &= ~(uint64_t)RWAITING;
			if (has_writers(s))
				to |= WRPHASE;
		}
	} while (!change(l, &s, to));
	/* From here on l may be gone, if no thread waited. */
	if (FZ_UNLIKELY((to ^ s) & WRPHASE))
		wake_a_writer(l);
	if (FZ_UNLIKELY((to ^ s) & RWAITING))
		wake_readers(l);
	if (FZ_UNLIKELY((to ^ s) & WRPHASE))
		let_the_woken_run();
}

/* ---- writing ------------------------------------------------------------ */

static void wrote(struct fz_rwlock *l)
{
	/* relaxed: see mine(). */
	atomic_store_explicit(&l->cur_writer, fz_self_tid(), memory_order_relaxed);
}

/*
 * A waiting writer, counted in `writers`, gives up after its timeout, unless the lock is free for
 * it now.
 */
static int leave(struct fz_rwlock *l)
{
	uint64_t s = look(l), to;

	do {
		if (writer_may(s)) {
			to = (s | WRPHASE | WRLOCKED) - WRITER;
		} else {
			to = s - WRITER;
			/* Readers that sleep behind writers may go on after the last writer. */
			if (!has_writers(to))
				to &= ~(uint64_t)RWAITING;
		}
	} while (!change(l, &s, to));
	if (writer_may(s)) {
		wrote(l);
		return 0;
	}
	if ((to ^ s) & RWAITING)
		wake_readers(l);
	return -ETIMEDOUT;
}

static int write_slowly(struct fz_rwlock *l, fz_nsec deadline)
{
	uint64_t s = look(l), counted = 0;

	for (;;) {
		if (writer_may(s)) {
			if (!change(l, &s, (s | WRPHASE | WRLOCKED) - counted))
				continue;
			wrote(l);
			return 0;
		}
		if (!counted) {
			if (!change(l, &s, s + WRITER))
				continue;
			counted = WRITER;
		}
		if (fz_lot_wait_while(&l->writers_futex, not_a_writers_turn, 0, deadline,
				      FZ_WAIT_SIGNAL | FZ_LOT_FOR(FZ_FOR_WRITE_LOCK)) == -ETIMEDOUT)
			return leave(l);
		s = look(l);
	}
}

int fz_rwlock_write(struct fz_rwlock *l, fz_nsec deadline)
{
	uint64_t s;

	if (FZ_LIKELY(fz_rwlock_write_quickly(l)))
		return 0;
	s = look(l);
	if (s & WRLOCKED && mine(l))
		return deadline ? -EDEADLK : -EBUSY;
	if (deadline)
		return write_slowly(l, deadline);
	while (!(s & (WRPHASE | WRLOCKED)) && !readers(s))
		if (change(l, &s, s | WRPHASE | WRLOCKED)) {
			wrote(l);
			return 0;
		}
	return -EBUSY;
}

static void unlock_write(struct fz_rwlock *l)
{
	uint64_t s = WRPHASE | WRLOCKED, to;
	/* Read it now: after the unlock l may be gone. */
	bool writers_go_first = l->kind != FZ_RWLOCK_PREFER_READER;
	bool keep = false;

	/* relaxed: see mine(). */
	atomic_store_explicit(&l->cur_writer, 0, memory_order_relaxed);
	to = 0;
	while (FZ_UNLIKELY(!change(l, &s, to))) {
		keep = writers_go_first && has_writers(s);
		to = s & ~(uint64_t)(keep ? WRLOCKED : WRLOCKED | WRPHASE);
	}
	if (FZ_LIKELY(s == (WRPHASE | WRLOCKED)))
		return;
	if (!keep && readers(s))
		wake_readers(l);
	else
		wake_a_writer(l);
	let_the_woken_run();
}

void fz_rwlock_unlock(struct fz_rwlock *l)
{
	if (mine(l))
		unlock_write(l);
	else
		unlock_read(l);
}
