/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/rwlock.c - rwlocks: readers together, a writer alone, nobody for ever.
 */
#include "tests/model/scenarios/sync/rwlock.h"

#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;
static _Atomic int readers, writers;

static void unlock(int i, int kind)
{
	int op = op_begin(i, UNLOCK, 0, kind);

	fz_rwlock_unlock(&l);
	op_end(op, 0);
}

static void read_within(int i, fz_nsec deadline)
{
	int op = op_begin(i, READ, 0, 0);
	int err = (int)op_end(op, fz_rwlock_read(&l, deadline));

	if (err == -ETIMEDOUT && deadline != FZ_FOREVER)
		return;
	MODEL_CHECK(err == 0, "the read lock fails");
	readers++;
	MODEL_CHECK(!writers, "a reader beside a writer");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(!writers, "a writer beside a reader");
	readers--;
	unlock(i, READ);
}

static void read_once(int i)
{
	read_within(i, FZ_FOREVER);
}

static void write_once(int i, fz_nsec deadline)
{
	int op = op_begin(i, WRITE, 0, 0);
	int err = (int)op_end(op, fz_rwlock_write(&l, deadline));

	MODEL_CHECK(err == 0 || (err == -ETIMEDOUT && deadline != FZ_FOREVER), "the write lock fails");
	if (err)
		return;
	MODEL_CHECK(++writers == 1 && !readers, "a writer is not alone");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(writers-- == 1 && !readers, "a writer is not alone");
	unlock(i, WRITE);
}

static void writers_wish(void)
{
	l.kind = FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE;
}

static void free_again(void)
{
	MODEL_CHECK(l.both == 0, "the lock is not free: %lx", (unsigned long)l.both);
}

static void read_or_write(int i)
{
	if (i < 2)
		read_once(i);
	else
		write_once(i, FZ_FOREVER);
}

SCENARIO(rwlock) = { .name = "rwlock", .what = "2 readers and a writer", .processors = 2, .fibers = 3,
	.thread = read_or_write, .finish = free_again, .apply = shared_or_alone };

SCENARIO(rwlock_writer) = { .name = "rwlock_writer", .what = "the same, writers first", .processors = 2,
	.fibers = 3, .prepare = writers_wish, .thread = read_or_write, .finish = free_again, .apply = shared_or_alone };

static void two_write(int i)
{
	if (i)
		write_once(i, FZ_FOREVER);
	else
		read_once(i);
}

SCENARIO(rwlock_two) = { .name = "rwlock_two", .what = "a reader and 2 writers", .processors = 2,
	.fibers = 3, .thread = two_write, .finish = free_again, .apply = shared_or_alone };

static void give_up(int i)
{
	if (i == 2)
		write_once(i, model_now() + FZ_MSEC);
	else
		read_once(i);
}

SCENARIO(rwlock_timed) = { .name = "rwlock_timed", .what = "a writer with a deadline, writers first",
	.processors = 2, .fibers = 3, .prepare = writers_wish, .thread = give_up,
	.finish = free_again, .apply = shared_or_alone };

/* A reader that gives up may have got the lock from one writer by then, and another may wait for it. */
static void read_or_give_up(int i)
{
	if (i)
		write_once(i, FZ_FOREVER);
	else
		read_within(i, model_now() + FZ_MSEC);
}

SCENARIO(rwlock_reader_timed) = { .name = "rwlock_reader_timed", .what = "a reader with a deadline and 2 writers",
	.processors = 2, .fibers = 3, .thread = read_or_give_up, .finish = free_again, .apply = shared_or_alone };
