/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/rwlock.c - rwlocks: readers together, a writer alone, nobody for ever.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sched/sched.h"
#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;
static _Atomic int readers, writers, gave_up;

static void read_once(void)
{
	MODEL_CHECK(fz_rwlock_read(&l, FZ_FOREVER) == 0, "the read lock fails");
	readers++;
	MODEL_CHECK(!writers, "a reader beside a writer");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(!writers, "a writer beside a reader");
	readers--;
	fz_rwlock_unlock(&l);
}

static void write_once(fz_nsec deadline)
{
	int err = fz_rwlock_write(&l, deadline);

	if (err == -ETIMEDOUT) {
		gave_up++;
		return;
	}
	MODEL_CHECK(err == 0, "the write lock fails");
	MODEL_CHECK(++writers == 1 && !readers, "a writer is not alone");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(writers-- == 1 && !readers, "a writer is not alone");
	fz_rwlock_unlock(&l);
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
		read_once();
	else
		write_once(FZ_FOREVER);
}

SCENARIO(rwlock) = { .name = "rwlock", .what = "2 readers and a writer", .processors = 2, .fibers = 3,
	.thread = read_or_write, .finish = free_again };

SCENARIO(rwlock_writer) = { .name = "rwlock_writer", .what = "the same, writers first", .processors = 2,
	.fibers = 3, .prepare = writers_wish, .thread = read_or_write, .finish = free_again };

static void two_write(int i)
{
	if (i)
		write_once(FZ_FOREVER);
	else
		read_once();
}

SCENARIO(rwlock_two) = { .name = "rwlock_two", .what = "a reader and 2 writers", .processors = 2,
	.fibers = 3, .thread = two_write, .finish = free_again };

static void give_up(int i)
{
	if (i == 2)
		write_once(model_now() + FZ_MSEC);
	else
		read_once();
}

SCENARIO(rwlock_timed) = { .name = "rwlock_timed", .what = "a writer with a deadline, writers first",
	.processors = 2, .fibers = 3, .prepare = writers_wish, .thread = give_up,
	.finish = free_again };
