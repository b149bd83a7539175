/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/base/stress_locks.c - reader-writer locks of every kind, barriers, once and
 * spin locks, by kernel threads under ThreadSanitizer, as in stress_sync.c.  Plain
 * data, guarded by what is tested, is what it complains about.
 *
 *	stress_locks [ROUNDS]
 */
#include <errno.h>
#include <string.h>

#include "runtime/sync/barrier.h"
#include "runtime/sync/lot.h"
#include "runtime/sync/once.h"
#include "runtime/sync/rwlock.h"
#include "runtime/sync/spin.h"
#include "stress.h"

static unsigned long plain, copy;

/* ---- reader-writer locks ------------------------------------------------- */

static struct fz_rwlock rwlock;
static _Atomic unsigned writes, inside;

/* Returns whether it got it. */
static bool lock_somehow(int (*lock)(struct fz_rwlock *, fz_nsec), uint64_t *seed, bool *ret_bad)
{
	int err;

	switch (random_next(seed) % 4) {
	case 0:
		err = lock(&rwlock, 0);
		*ret_bad |= err && err != -EBUSY;
		return !err;
	case 1:
		err = lock(&rwlock, now_ns() + random_next(seed) % 40 * FZ_USEC);
		*ret_bad |= err && err != -ETIMEDOUT;
		return !err;
	case 2:
		if (lock == fz_rwlock_read && fz_rwlock_read_quickly(&rwlock))
			return true;
		if (lock == fz_rwlock_read && fz_rwlock_may_count(&rwlock)) {
			if (!fz_rwlock_count(&rwlock))
				fz_rwlock_await_read_phase(&rwlock);
			return true;
		}
		err = lock(&rwlock, FZ_FOREVER);
		*ret_bad |= err != 0;
		return !err;
	default:
		err = lock(&rwlock, FZ_FOREVER);
		*ret_bad |= err != 0;
		return !err;
	}
}

static void *read_and_write(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;
	bool bad = false;

	for (unsigned i = 0; i < rounds && !bad; i++) {
		if (random_next(&seed) % 3 == 0) {
			if (!lock_somehow(fz_rwlock_write, &seed, &bad))
				continue;
			plain++;
			bad |= GET(inside) != 0;
			copy++;
			COUNT(writes);
			bad |= fz_rwlock_read(&rwlock, FZ_FOREVER) != -EDEADLK;
		} else {
			if (!lock_somehow(fz_rwlock_read, &seed, &bad))
				continue;
			COUNT(inside);
			bad |= plain != copy;
			if (rwlock.kind != FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE &&
			    random_next(&seed) % 4 == 0) {
				bad |= fz_rwlock_read(&rwlock, FZ_FOREVER) != 0;
				fz_rwlock_unlock(&rwlock);
			}
			atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		}
		if (random_next(&seed) % 2 == 0 || !fz_rwlock_read_unlock_quickly(&rwlock))
			fz_rwlock_unlock(&rwlock);
	}
	return (void *)(uintptr_t)bad;
}

static void rwlocks(void)
{
	for (uint32_t kind = 0; kind <= FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE; kind++) {
		memset(&rwlock, 0, sizeof(rwlock));
		rwlock.kind = kind;
		plain = copy = 0;
		SET(writes, 0);
		check("rwlock", run(read_and_write) && plain == GET(writes) && copy == plain &&
					/* Nobody is left in it, or thought to be. */
					(GET(rwlock.both) & ~(uint64_t)4) == 0 &&
					GET(rwlock.cur_writer) == 0);
	}
}

/* ---- barriers ------------------------------------------------------------ */

static struct fz_barrier *barrier;
static _Atomic unsigned lasts;

static void *pass(void *arg)
{
	unsigned long mine = 0;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		mine++;
		/* Whoever is told so is alone with it until all have come again. */
		if (fz_barrier_wait(barrier)) {
			COUNT(lasts);
			plain++;
		}
		fz_barrier_wait(barrier);
		if (plain != mine)
			return (void *)1;
		fz_barrier_wait(barrier);
	}
	return NULL;
}

/* The one that lets all go destroys it while they leave. */
static void *pass_and_free(void *arg)
{
	struct fz_barrier *b = barrier;

	(void)arg;
	if (fz_barrier_wait(b)) {
		fz_barrier_destroy(b);
		free(b);
	}
	return NULL;
}

static void barriers(void)
{
	struct fz_barrier on_stack = { .count = THREADS };
	bool ok = true;

	plain = 0;
	barrier = &on_stack;
	check("barrier", run(pass) && GET(lasts) == rounds);
	/* The words may wrap. */
	SET(on_stack.round, UINT32_MAX - 2);
	SET(on_stack.left, (UINT32_MAX - 2) * THREADS * 2);
	plain = 0;
	check("barrier, wrapping", run(pass));
	fz_barrier_destroy(&on_stack);
	for (unsigned i = 0; i < rounds / 30; i++) {
		barrier = calloc(1, sizeof(*barrier));
		barrier->count = THREADS;
		ok &= run(pass_and_free);
	}
	check("barrier, destroyed", ok);
}

/* ---- once ---------------------------------------------------------------- */

static struct fz_once once;
static unsigned tries;

static void *come(void *arg)
{
	(void)arg;
	while (fz_once_begin(&once)) {
		tries++;
		if (tries % 3) {
			fz_once_end(&once, false);
			continue;
		}
		plain++;
		fz_once_end(&once, true);
		break;
	}
	return (void *)(uintptr_t)(plain != 1 || !fz_once_is_done(&once));
}

static void onces(void)
{
	bool ok = true;

	for (unsigned i = 0; i < rounds / 30; i++) {
		plain = tries = 0;
		SET(once.word, 0);
		ok &= run(come) && tries == 3;
	}
	check("once", ok);
}

/* ---- spin locks ---------------------------------------------------------- */

static struct fz_spin spin = { FZ_SPIN_FREE };

static void *spin_and_count(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		if (!fz_spin_try(&spin))
			fz_spin_lock_slowly(&spin);
		plain++;
		fz_spin_unlock(&spin);
	}
	return NULL;
}

/* ---- waiting for a condition --------------------------------------------- */

static _Atomic uint64_t both_halves;

static bool not_equal(const void *key, uint32_t unused)
{
	uint64_t both = atomic_load_explicit((const _Atomic uint64_t *)key, memory_order_acquire);

	(void)unused;
	return (uint32_t)both != (uint32_t)(both >> 32);
}

/* Evens add to the low half and wait for the odd ones to do so to the high one. */
static void *keep_level(void *arg)
{
	bool low = (uintptr_t)arg % 2;

	for (unsigned i = 0; i < rounds; i++) {
		if (low && (uintptr_t)arg != 1)
			break;
		if (!low && (uintptr_t)arg != 0)
			break;
		if (low) {
			/* The wake-up for the round before may come only now. */
			do {
				fz_lot_wait_while(&both_halves, not_equal, 0, FZ_FOREVER, 0);
			} while (not_equal(&both_halves, 0));
			plain++;
			atomic_fetch_add_explicit(&both_halves, 1, memory_order_release);
			fz_lot_wake((const char *)&both_halves + 4, 1);
		} else {
			uint64_t both;

			while (both = atomic_load_explicit(&both_halves, memory_order_acquire),
			       (uint32_t)both == (uint32_t)(both >> 32))
				fz_lot_wait((const _Atomic uint32_t *)&both_halves + 1,
					    (uint32_t)(both >> 32), now_ns() + 100 * FZ_USEC, 0);
			copy += plain;
			atomic_fetch_add_explicit(&both_halves, (uint64_t)1 << 32,
						  memory_order_release);
			/* Nothing of it is touched to wake: only its address. */
			fz_lot_wake(&both_halves, UINT32_MAX);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	begin(argc, argv, 3000);
	rwlocks();
	barriers();
	onces();
	plain = 0;
	check("spin", run(spin_and_count) && plain == (unsigned long)THREADS * rounds);
	plain = copy = 0;
	check("lot, a condition", run(keep_level) && plain == rounds &&
					  copy == (unsigned long)rounds * (rounds + 1) / 2);
	return end();
}
