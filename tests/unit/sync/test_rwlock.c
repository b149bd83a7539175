/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/sync/rwlock.h"
#include "runtime_setup.h"

_Static_assert(sizeof(struct fz_rwlock) <= sizeof(pthread_rwlock_t), "fits");

enum { WRPHASE = 1, WRLOCKED = 2, READER = 8 };

static bool is_parked(struct fz_fiber *f)
{
	return (GET(f->wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED;
}

/* What a debugger shows of it. */
Test(rwlock, words_are_those_of_libc)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	struct fz_rwlock *l = (struct fz_rwlock *)&lock;

	setup_layout();
	cr_assert_eq(l->kind, FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE);
	cr_assert(fz_rwlock_read_quickly(l));
	cr_assert_eq(fz_rwlock_read(l, FZ_FOREVER), 0);
	cr_assert_eq(lock.__data.__readers, 2 * READER);
	cr_assert_eq(fz_rwlock_write(l, 0), -EBUSY);
	cr_assert_eq(fz_rwlock_write(l, now_ns() + FZ_MSEC), -ETIMEDOUT);
	cr_assert_eq(lock.__data.__readers, 2 * READER);
	cr_assert_eq(lock.__data.__writers, 0);
	cr_assert(fz_rwlock_read_unlock_quickly(l));
	fz_rwlock_unlock(l);
	cr_assert_eq(lock.__data.__readers, 0);

	cr_assert_eq(fz_rwlock_write(l, FZ_FOREVER), 0);
	cr_assert_eq(lock.__data.__readers, WRPHASE | WRLOCKED);
	cr_assert_eq(lock.__data.__cur_writer, fz_self_tid());
	cr_assert(!fz_rwlock_read_quickly(l));
	cr_assert(!fz_rwlock_read_unlock_quickly(l));
	cr_assert_eq(fz_rwlock_read(l, FZ_FOREVER), -EDEADLK);
	cr_assert_eq(fz_rwlock_write(l, FZ_FOREVER), -EDEADLK);
	cr_assert_eq(fz_rwlock_read(l, 0), -EBUSY);
	cr_assert_eq(fz_rwlock_write(l, 0), -EBUSY);
	fz_rwlock_unlock(l);
	cr_assert_eq(lock.__data.__readers, 0);
	cr_assert_eq(lock.__data.__cur_writer, 0);
	/* One that nobody has stays as it is. */
	fz_rwlock_unlock(l);
	cr_assert_eq(GET(l->both), 0);
}

Test(rwlock, too_many_readers)
{
	struct fz_rwlock l = { .kind = FZ_RWLOCK_PREFER_READER };

	setup_layout();
	SET(l.both, 0x7ffffff0);
	cr_assert(!fz_rwlock_read_quickly(&l));
	cr_assert_eq(fz_rwlock_read(&l, 0), 0);
	cr_assert_eq(fz_rwlock_read(&l, 0), -EAGAIN);
	cr_assert_eq(fz_rwlock_read(&l, FZ_FOREVER), -EAGAIN);
	fz_rwlock_unlock(&l);
	cr_assert_eq(GET(l.both), 0x7ffffff0);
}

static struct fz_rwlock lock;
static _Atomic unsigned next_in_line, order[8];

/* The clock of the runtime is ahead of the kernel's by as much: so that no time-out comes before the test wants it. */
static _Atomic fz_nsec ahead;

static int clock_ahead(int clock, struct timespec *ts)
{
	const fz_nsec by = GET(ahead);

	if (clock_gettime(clock, ts))
		return -1;
	ts->tv_sec += (time_t)(by / FZ_SEC);
	return 0;
}

static void *write_it(void *arg)
{
	if (fz_rwlock_write(&lock, arg ? fz_now() + 3600 * FZ_SEC : FZ_FOREVER))
		return (void *)1;
	SET(order[COUNT(next_in_line)], 'w');
	yield_fiber();
	fz_rwlock_unlock(&lock);
	return NULL;
}

static void *read_it(void *arg)
{
	(void)arg;
	if (fz_rwlock_read(&lock, FZ_FOREVER))
		return (void *)1;
	SET(order[COUNT(next_in_line)], 'r');
	yield_fiber();
	fz_rwlock_unlock(&lock);
	return NULL;
}

static struct fz_fiber *parked(void *(*fn)(void *), void *arg)
{
	struct fz_fiber *f = spawn(fn, arg);

	cr_assert(EVENTUALLY(is_parked(f)));
	return f;
}

static void line_up(enum fz_rwlock_kind kind, const char *expected)
{
	struct fz_fiber *f[4];

	setup_start(1);
	lock.kind = kind;
	cr_assert_eq(fz_rwlock_write(&lock, FZ_FOREVER), 0);
	for (int i = 0; i < 4; i++)
		f[i] = parked(i % 2 ? read_it : write_it, NULL);
	cr_assert_eq(GET(lock.writers), 2);
	fz_rwlock_unlock(&lock);
	for (int i = 0; i < 4; i++)
		cr_assert_null(join(f[i]));
	for (int i = 0; i < 4; i++)
		cr_assert_eq(GET(order[i]), (unsigned)expected[i]);
	cr_assert_eq(GET(lock.both), 0);
}

Test(rwlock, readers_go_first)
{
	line_up(FZ_RWLOCK_PREFER_READER, "rrww");
}

Test(rwlock, writers_go_first)
{
	line_up(FZ_RWLOCK_PREFER_WRITER, "wwrr");
}

Test(rwlock, writers_go_first_nonrecursive)
{
	line_up(FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE, "wwrr");
}

Test(rwlock, readers_wait_behind_writers_until_they_give_up)
{
	struct fz_fiber *writer, *reader;

	setup_start(1);
	fz_host.clock_gettime = clock_ahead;
	lock.kind = FZ_RWLOCK_PREFER_WRITER_NONRECURSIVE;
	cr_assert_eq(fz_rwlock_read(&lock, FZ_FOREVER), 0);
	writer = parked(write_it, &lock);
	cr_assert_eq(fz_rwlock_read(&lock, 0), -EBUSY);
	reader = parked(read_it, NULL);
	SET(ahead, 7200 * FZ_SEC);
	cr_assert_eq(join(writer), (void *)1, "timed out");
	cr_assert_null(join(reader));
	cr_assert_eq(GET(lock.both), READER);
	fz_rwlock_unlock(&lock);
	cr_assert_eq(GET(lock.both), 0);
}
