/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/rwlock_try.c - rwlocks that prefer readers are tried, as by pthread_rwlock_tryrdlock() and
 * pthread_rwlock_trywrlock(): a try does not wait, and is refused only while somebody has the lock.
 */
#include "tests/model/scenarios/sync/rwlock.h"

#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;
static _Atomic int readers, writers;
static _Atomic uint32_t held, tried;

/* As in preload/sync/rwlock.c, except that a read that waits is not taken in steps: rwlock_read.c has these. */
static long lock(int i, int kind, int how)
{
	const fz_nsec deadline = how == TRIES ? 0 : FZ_FOREVER;
	int op = op_begin(i, kind, 0, how);

	if (kind == READ)
		return op_end(op, fz_rwlock_read_quickly(&l) ? 0 : fz_rwlock_read(&l, deadline));
	return op_end(op, fz_rwlock_write(&l, deadline));
}

static void unlock(int i, int kind)
{
	int op = op_begin(i, UNLOCK, 0, kind);

	if (!fz_rwlock_read_unlock_quickly(&l))
		fz_rwlock_unlock(&l);
	op_end(op, 0);
}

static void free_again(void)
{
	check_free(&l);
}

static void check_company(int kind)
{
	if (kind == WRITE)
		MODEL_CHECK(writers == 1 && !readers, "a writer with %d readers, %d writers", readers, writers);
	else
		MODEL_CHECK(!writers, "a reader beside a writer");
}

static void take(int i, int kind, int how)
{
	_Atomic int *holders = kind == WRITE ? &writers : &readers;
	const long err = lock(i, kind, how);

	MODEL_CHECK(err == 0 || (how == TRIES && err == -EBUSY), "the lock fails: %ld", err);
	if (err)
		return;
	++*holders;
	check_company(kind);
	fz_sched_give_way(fz_self());
	check_company(kind);
	--*holders;
	unlock(i, kind);
}

static void two_try(int i)
{
	if (i == 0) {
		take(i, WRITE, WAITS);
	} else {
		take(i, i == 1 ? READ : WRITE, TRIES);
		take(i, i == 1 ? WRITE : READ, TRIES);
	}
}

SCENARIO(rwlock_try) = { .name = "rwlock_try", .what = "a writer waits, 2 others try to read and to write",
	.processors = 2, .fibers = 3, .thread = two_try, .finish = free_again, .apply = shared_or_alone };

SCENARIO(rwlock_try_native) = { .name = "rwlock_try_native", .what = "the same, one that tries is a native thread",
	.processors = 2, .fibers = 2, .natives = 1, .thread = two_try, .finish = free_again, .apply = shared_or_alone };

/* While somebody, maybe the caller, has locked it so. */
static void try_both(int i, int locked)
{
	MODEL_CHECK(lock(i, WRITE, TRIES) == -EBUSY, "a try to write gets a lock that is held");
	if (locked == WRITE) {
		MODEL_CHECK(lock(i, READ, TRIES) == -EBUSY, "a try to read gets a lock that is written");
	} else {
		MODEL_CHECK(lock(i, READ, TRIES) == 0, "a try to read is refused beside a reader");
		unlock(i, READ);
	}
}

/* The first keeps the lock until the others have tried: if a try waits, nobody goes on. */
static void keep(int i, int kind)
{
	if (i == 0) {
		MODEL_CHECK(lock(i, kind, WAITS) == 0, "the lock fails");
		announce(&held);
		try_both(i, kind);
		await(&tried, 2);
		unlock(i, kind);
	} else {
		await(&held, 1);
		try_both(i, kind);
		announce(&tried);
	}
}

static void keep_written(int i)
{
	keep(i, WRITE);
}

static void keep_shared(int i)
{
	keep(i, READ);
}

SCENARIO(rwlock_try_written) = { .name = "rwlock_try_written",
	.what = "a writer has the lock until 2 others have tried", .processors = 2, .fibers = 3, .thread = keep_written,
	.finish = free_again, .apply = shared_or_alone };

SCENARIO(rwlock_try_shared) = { .name = "rwlock_try_shared",
	.what = "a reader has the lock until 2 others have tried", .processors = 2, .fibers = 3, .thread = keep_shared,
	.finish = free_again, .apply = shared_or_alone };
