/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/rwlock.c - rwlocks, against a count of the holders: readers together, a writer
 * alone, nobody for ever.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;
static _Atomic int readers, writers, gave_up;

enum { READ, WRITE, UNLOCK };
enum { FREE = 0, WRITTEN = 255 };	/* between them: the number of readers */

static bool holders(uint64_t *state, const struct operation *op)
{
	switch (op->kind) {
	case READ:
		return op->result == 0 && (*state)++ != WRITTEN;
	case WRITE:
		/* It may time out at any time. */
		if (op->result == -ETIMEDOUT)
			return true;
		if (*state != FREE)
			return false;
		*state = WRITTEN;
		return op->result == 0;
	default:
		*state = *state == WRITTEN ? FREE : *state - 1;
		return true;
	}
}

static void unlock(int i)
{
	int op = op_begin(i, UNLOCK, 0, 0);

	fz_rwlock_unlock(&l);
	op_end(op, 0);
}

static void read_once(int i)
{
	int op = op_begin(i, READ, 0, 0);

	MODEL_CHECK(op_end(op, fz_rwlock_read(&l, FZ_FOREVER)) == 0, "the read lock fails");
	readers++;
	MODEL_CHECK(!writers, "a reader beside a writer");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(!writers, "a writer beside a reader");
	readers--;
	unlock(i);
}

static void write_once(int i, fz_nsec deadline)
{
	int op = op_begin(i, WRITE, 0, 0);
	int err = (int)op_end(op, fz_rwlock_write(&l, deadline));

	if (err == -ETIMEDOUT) {
		gave_up++;
		return;
	}
	MODEL_CHECK(err == 0, "the write lock fails");
	MODEL_CHECK(++writers == 1 && !readers, "a writer is not alone");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(writers-- == 1 && !readers, "a writer is not alone");
	unlock(i);
}

static void writers_wish(void)
{
	l.kind = FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE;
}

static void free_again(void)
{
	MODEL_CHECK((l.both & ~(uint64_t)5) == 0, "the lock is not free: %lx",
		    (unsigned long)l.both);
}

static void read_or_write(int i)
{
	if (i < 2)
		read_once(i);
	else
		write_once(i, FZ_FOREVER);
}

SCENARIO(rwlock) = { .name = "rwlock", .what = "2 readers and a writer", .processors = 2, .fibers = 3,
	.thread = read_or_write, .finish = free_again, .apply = holders };

SCENARIO(rwlock_writer) = { .name = "rwlock_writer", .what = "the same, writers first", .processors = 2,
	.fibers = 3, .prepare = writers_wish, .thread = read_or_write, .finish = free_again, .apply = holders };

static void two_write(int i)
{
	if (i)
		write_once(i, FZ_FOREVER);
	else
		read_once(i);
}

SCENARIO(rwlock_two) = { .name = "rwlock_two", .what = "a reader and 2 writers", .processors = 2,
	.fibers = 3, .thread = two_write, .finish = free_again, .apply = holders };

static void give_up(int i)
{
	if (i == 2)
		write_once(i, model_now() + FZ_MSEC);
	else
		read_once(i);
}

SCENARIO(rwlock_timed) = { .name = "rwlock_timed", .what = "a writer with a deadline, writers first",
	.processors = 2, .fibers = 3, .prepare = writers_wish, .thread = give_up,
	.finish = free_again, .apply = holders };
