/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/rwlock_try.c - rwlocks that are tried, as by pthread_rwlock_tryrdlock() and
 * pthread_rwlock_trywrlock(): a try does not wait, and is refused only while somebody has the lock.
 */
#include "tests/model/scenarios/sync/rwlock.h"

#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;
static _Atomic int readers, writers;
static _Atomic uint32_t held, tried;

/* A try is a READ or a WRITE with this argument. */
enum { WAITS, TRIES };

/* Readers are preferred here: a reader is refused by a writer alone. */
static bool refused_while_held(uint64_t *state, const struct operation *op)
{
	uint64_t now = *state;

	if (op->kind == UNLOCK || op->arg != TRIES || op->result != -EBUSY)
		return shared_or_alone(state, op);
	return op->kind == READ ? now >= (uint64_t)1 << 32 : now != 0;
}

/* As preload/sync/rwlock.c does before it calls. */
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

static void alone_or_together(int kind)
{
	if (kind == WRITE)
		MODEL_CHECK(writers == 1 && !readers, "a writer with %d readers, %d writers", readers, writers);
	else
		MODEL_CHECK(!writers, "a reader beside a writer");
}

static void hold(int i, int kind)
{
	(*(kind == WRITE ? &writers : &readers))++;
	alone_or_together(kind);
	fz_sched_give_way(fz_self());
	alone_or_together(kind);
	(*(kind == WRITE ? &writers : &readers))--;
	unlock(i, kind);
}

static void take(int i, int kind, int how)
{
	const long err = lock(i, kind, how);

	MODEL_CHECK(err == 0 || (how == TRIES && err == -EBUSY), "the lock fails: %ld", err);
	if (!err)
		hold(i, kind);
}

static void free_again(void)
{
	MODEL_CHECK(l.both == 0, "the lock is not free: %lx", (unsigned long)l.both);
	MODEL_CHECK(!l.cur_writer, "a writer is named that has left");
}

/* The first waits, the others try, to read and to write. */
static void two_try(int i)
{
	if (i == 0) {
		take(i, WRITE, WAITS);
	} else {
		take(i, i == 1 ? READ : WRITE, TRIES);
		take(i, i == 1 ? WRITE : READ, TRIES);
	}
}

SCENARIO(rwlock_try) = { .name = "rwlock_try", .what = "a writer waits, 2 others try to read and to write", .processors = 2,
	.fibers = 3, .thread = two_try, .finish = free_again, .apply = refused_while_held };

SCENARIO(rwlock_try_native) = { .name = "rwlock_try_native", .what = "the same, one that tries is a native thread",
	.processors = 2, .fibers = 2, .natives = 1, .thread = two_try, .finish = free_again,
	.apply = refused_while_held };

/* The first keeps the lock until the others have tried: if a try waits, nobody goes on. */
static void kept(int i, int as)
{
	if (i == 0) {
		MODEL_CHECK(lock(i, as, WAITS) == 0, "the lock fails");
		MODEL_CHECK(lock(i, WRITE, TRIES) == -EBUSY, "its holder's own try is not refused");
		announce(&held);
		await(&tried, scenario_now->fibers + scenario_now->natives - 1);
		unlock(i, as);
		return;
	}
	await(&held, 1);
	MODEL_CHECK(lock(i, WRITE, TRIES) == -EBUSY, "a try to write gets a lock that is held");
	if (as == WRITE) {
		MODEL_CHECK(lock(i, READ, TRIES) == -EBUSY, "a try to read gets a lock that is written");
	} else {
		MODEL_CHECK(lock(i, READ, TRIES) == 0, "a try to read is refused beside a reader");
		unlock(i, READ);
	}
	announce(&tried);
}

static void kept_written(int i)
{
	kept(i, WRITE);
}

static void kept_read(int i)
{
	kept(i, READ);
}

SCENARIO(rwlock_try_written) = { .name = "rwlock_try_written", .what = "a writer has the lock until 2 others have tried",
	.processors = 2, .fibers = 3, .thread = kept_written, .finish = free_again, .apply = refused_while_held };

SCENARIO(rwlock_try_shared) = { .name = "rwlock_try_shared", .what = "a reader has the lock until 2 others have tried",
	.processors = 2, .fibers = 3, .thread = kept_read, .finish = free_again, .apply = refused_while_held };
