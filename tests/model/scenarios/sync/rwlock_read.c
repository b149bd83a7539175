/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/rwlock_read.c - rwlocks of which readers give up, and readers that take them as
 * pthread_rwlock_rdlock() does, in steps; against readers that share and a writer that is alone.
 */
#include "tests/model/scenarios/sync/rwlock.h"

#include "runtime/sync/rwlock.h"

static struct fz_rwlock l;

enum { PHASE = 1, LOCKED = 2, BEHIND = 4 };

/* What rwlock.h says of the words, of any moment. */
static void check_words(void)
{
	const uint64_t s = l.both;
	const uint32_t of_readers = (uint32_t)s >> 3, of_writers = (uint32_t)(s >> 32);

	MODEL_CHECK(s & PHASE || !(s & LOCKED), "locked by a writer in the read phase: %lx", (unsigned long)s);
	MODEL_CHECK(!(s & PHASE) || s & LOCKED || of_writers, "reserved for nobody: %lx", (unsigned long)s);
	MODEL_CHECK(!(s & BEHIND) || (!(s & PHASE) && of_readers && of_writers),
		    "readers sleep behind no writer: %lx", (unsigned long)s);
	MODEL_CHECK(of_readers <= 3 && of_writers <= 3, "more are counted than there are: %lx", (unsigned long)s);
}

static void nobody_is_left(void)
{
	check_free(&l);
}

/* Inside, for as long as the others wait; then unlock. */
static void hold(int i, int as, fz_nsec while_others_wait)
{
	int op;

	check_words();
	if (while_others_wait)
		model_nap(while_others_wait);
	op = op_begin(i, UNLOCK, 0, as);
	if (as == WRITE || !fz_rwlock_read_unlock_quickly(&l))
		fz_rwlock_unlock(&l);
	op_end(op, 0);
	check_words();
}

/* A wait that gives up does so after its deadline, and has none if it is for ever. */
static bool has(int op, long result, fz_nsec deadline)
{
	op_end(op, result);
	check_words();
	if (result == 0)
		return true;
	MODEL_CHECK(result == -ETIMEDOUT, "the lock fails: %ld", result);
	MODEL_CHECK(model_now() >= deadline, "gives up before its deadline");
	return false;
}

static void read_until(int i, fz_nsec deadline)
{
	const int op = op_begin(i, READ, 0, 0);

	if (has(op, fz_rwlock_read(&l, deadline), deadline))
		hold(i, READ, 0);
}

static void read_in_steps(int i, fz_nsec while_others_wait)
{
	const int op = op_begin(i, READ, 0, 0);
	int err = 0;

	if (!fz_rwlock_may_count(&l))
		err = fz_rwlock_read(&l, FZ_FOREVER);
	else if (!fz_rwlock_count(&l))
		fz_rwlock_await_read_phase(&l);
	has(op, err, FZ_FOREVER);
	hold(i, READ, while_others_wait);
}

static void write_until(int i, fz_nsec deadline, fz_nsec while_others_wait)
{
	const int op = op_begin(i, WRITE, 0, 0);

	if (has(op, fz_rwlock_write(&l, deadline), deadline))
		hold(i, WRITE, while_others_wait);
}

static void behind_a_writer(int i)
{
	if (i == 0)
		write_until(i, FZ_FOREVER, FZ_MSEC);
	else if (i == 1)
		read_until(i, model_now() + FZ_MSEC);
	else
		read_in_steps(i, 0);
}

SCENARIO(rwlock_read) = { .name = "rwlock_read",
	.what = "a reader with a deadline and one without, while a writer holds the lock",
	.processors = 2, .fibers = 3, .thread = behind_a_writer, .finish = nobody_is_left,
	.apply = shared_or_alone };

SCENARIO(rwlock_read_native) = { .name = "rwlock_read_native",
	.what = "the same, the readers are native threads",
	.processors = 1, .fibers = 1, .natives = 2, .thread = behind_a_writer, .finish = nobody_is_left,
	.apply = shared_or_alone };

/* The unlock of the first writer promises the lock to the second one, and the reader is counted. */
static void writers_in_turn(int i)
{
	if (i == 0)
		write_until(i, FZ_FOREVER, FZ_MSEC);
	else if (i == 1)
		read_until(i, model_now() + FZ_MSEC);
	else
		write_until(i, model_now() + FZ_MSEC, 0);
}

static void writers_wish(void)
{
	l.kind = FZ_RWLOCK_PREFER_WRITER;
}

SCENARIO(rwlock_read_turns) = { .name = "rwlock_read_turns",
	.what = "a reader and a second writer with deadlines, while a writer holds the lock, writers first",
	.processors = 2, .fibers = 3, .prepare = writers_wish, .thread = writers_in_turn,
	.finish = nobody_is_left, .apply = shared_or_alone };

static void behind_one_that_waits(int i)
{
	if (i == 0)
		read_in_steps(i, FZ_MSEC);
	else if (i == 1)
		write_until(i, model_now() + FZ_MSEC, 0);
	else
		read_until(i, model_now() + FZ_MSEC);
}

static void writers_wish_strictly(void)
{
	l.kind = FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE;
}

SCENARIO(rwlock_read_behind) = { .name = "rwlock_read_behind",
	.what = "a reader with a deadline sleeps behind a writer that waits, with one, for a reader",
	.processors = 2, .fibers = 3, .prepare = writers_wish_strictly, .thread = behind_one_that_waits,
	.finish = nobody_is_left, .apply = shared_or_alone };

/* The read phase begins for a reader that may give up, and then a writer is behind it that does not. */
static void between_writers(int i)
{
	if (i == 0)
		write_until(i, FZ_FOREVER, FZ_MSEC);
	else if (i == 1)
		read_until(i, model_now() + FZ_MSEC);
	else
		write_until(i, FZ_FOREVER, 0);
}

SCENARIO(rwlock_read_between) = { .name = "rwlock_read_between",
	.what = "a reader with a deadline between 2 writers",
	.processors = 2, .fibers = 3, .thread = between_writers, .finish = nobody_is_left,
	.apply = shared_or_alone };

static _Atomic uint32_t ended;

/* The lock is held until the second reader has had it or given up, behind a writer or not. */
static void until_over(int i)
{
	if (i == 0) {
		MODEL_CHECK(fz_rwlock_read(&l, FZ_FOREVER) == 0, "the lock fails");
		await(&ended, 1);
		fz_rwlock_unlock(&l);
	} else if (i == 1) {
		write_until(i, FZ_FOREVER, 0);
	} else {
		read_until(i, model_now() + FZ_MSEC);
		announce(&ended);
	}
	check_words();
}

/* The operations of the first reader are not in the history, so there is none. */
SCENARIO(rwlock_read_over) = { .name = "rwlock_read_over",
	.what = "a reader holds the lock until one with a deadline, behind a writer, is over",
	.processors = 2, .fibers = 3, .prepare = writers_wish_strictly, .thread = until_over,
	.finish = nobody_is_left };
