/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/thread.c - lives of threads: made again from the pool, joined, detached.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "arch/arch.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/pool.h"
#include "runtime/sched/sched.h"

enum { IN_POOL_MOST = 5 };

static _Atomic int lives;
static _Atomic int joined;
static struct fz_fiber *_Atomic shared;
static _Atomic int join_is_over, gave_up;

static void *live(void *arg)
{
	atomic_fetch_add_explicit(&lives, 1, memory_order_relaxed);
	return arg;
}

/* Ends by exit(2), deeper in the stack than what a joiner leaves of it. */
static void *vanish(void *arg)
{
	volatile char deep[16384];

	deep[0] = 0;
	live(arg);
	fz_fiber_vanish(fz_self(), deep[0]);
}

static struct fz_fiber *make_as(void *(*start)(void *), bool detached)
{
	struct fz_birth birth = { .start = start, .arg = &lives, .stack_size = 64 * 1024,
				  .guard_size = 4096, .detached = detached };
	unsigned long handle = 0;

	MODEL_CHECK(fz_fiber_create(&birth, &handle) == 0, "no thread is made");
	return fz_fiber_of_handle(handle);
}

static struct fz_fiber *make(bool detached)
{
	return make_as(live, detached);
}

/* So that the pool has fibers: a first life needs more of the kernel than the model has. */
static void fill_pool_with(int n)
{
	struct fz_fiber *f[IN_POOL_MOST];

	for (int i = 0; i < n; i++)
		f[i] = make(false);
	for (int i = 0; i < n; i++)
		fz_fiber_join(f[i], FZ_FOREVER, NULL);
	lives = 0;
}

static void fill_pool(void)
{
	fill_pool_with(3);
}

static void make_and_join(int i)
{
	void *result = NULL;

	(void)i;
	MODEL_CHECK(fz_fiber_join(make(false), FZ_FOREVER, &result) == 0, "join fails");
	MODEL_CHECK(result == (void *)&lives, "the result is another");
	joined++;
}

static void join_vanishing(int i)
{
	(void)i;
	MODEL_CHECK(fz_fiber_join(make_as(vanish, false), FZ_FOREVER, NULL) == 0, "join fails");
	joined++;
}

static void two_lives(void)
{
	MODEL_CHECK(lives == 2 && joined == 2, "%d lives, %d joined", lives, joined);
}

SCENARIO(join) = { .name = "join", .what = "2 fibers make a thread each and join it", .processors = 2,
	.fibers = 2, .prepare = fill_pool, .thread = make_and_join, .finish = two_lives };

SCENARIO(vanish) = { .name = "vanish", .what = "2 fibers make a thread each that ends by exit(2), and join it",
	.processors = 2, .fibers = 2, .prepare = fill_pool, .thread = join_vanishing, .finish = two_lives };

SCENARIO(join_native) = { .name = "join_native", .what = "a fiber and a native thread make and join",
	.processors = 1, .fibers = 1, .natives = 1, .prepare = fill_pool, .thread = make_and_join,
	.finish = two_lives };

/* One joins, another detaches: exactly one of them is right, and the record is freed once. */
static void make_shared(void)
{
	fill_pool();
	shared = NULL;
}

static void join_or_detach(int i)
{
	bool detached = false;
	int err;

	if (i == 0) {
		shared = make(false);
		err = fz_fiber_join(shared, FZ_FOREVER, NULL);
		MODEL_CHECK(err == 0 || err == -EINVAL || err == -ESRCH, "join: %d", err);
		joined += err == 0;
		join_is_over = 1;
		return;
	}
	if (shared) {
		err = fz_fiber_detach(shared);
		MODEL_CHECK(err == 0 || err == -EINVAL || err == -ESRCH, "detach: %d", err);
		detached = !err;
	}
	fz_sched_give_way(fz_self());
	/* The other one's join of what is detached may come so late that it is that of the new life, as in libc. */
	if (detached && !join_is_over) {
		gave_up = 1;
		return;
	}
	/* A new life must not get a record that is still in use. */
	make_and_join(1);
}

static void at_least_one(void)
{
	MODEL_CHECK(lives >= 1 || gave_up, "no life");
}

SCENARIO(detach) = { .name = "detach", .what = "a thread is joined and detached at once, and another made",
	.processors = 2, .fibers = 2, .prepare = make_shared, .thread = join_or_detach,
	.finish = at_least_one };

/* ---- joins with a deadline ------------------------------------------------- */

/*
 * One joins a thread with a deadline that it may end before or after, another joins or detaches it meanwhile;
 * then each makes a life of its own.
 */
static _Atomic uint32_t made, done, slept;
static _Atomic int detached_it;

static void *sleep_and_live(void *arg)
{
	model_nap(FZ_MSEC);
	live(arg);
	announce(&slept);
	return arg;
}

static bool join_until(fz_nsec deadline)
{
	void *result = NULL;
	int err = fz_fiber_join(shared, deadline, &result);

	MODEL_CHECK(err == 0 || err == -EINVAL || err == -ESRCH || (deadline != FZ_FOREVER && err == -ETIMEDOUT),
		    "join: %d", err);
	if (err == -ETIMEDOUT) {
		MODEL_CHECK(model_now() >= deadline, "gives up before its deadline");
		return false;
	}
	if (err == 0) {
		joined++;
		MODEL_CHECK(lives == 1 && result == (void *)&lives, "joined, and it has not ended");
	}
	return true;
}

static void join_timed(int i, bool detaches)
{
	if (i == 0) {
		shared = make_as(sleep_and_live, false);
		announce(&made);
		if (!join_until(model_now() + FZ_MSEC) && !join_until(model_now() + FZ_MSEC))
			join_until(FZ_FOREVER);
	} else {
		await(&made, 1);
		if (detaches)
			detached_it = fz_fiber_detach(shared) == 0;
		else
			join_until(FZ_FOREVER);
	}
	announce(&done);
	await(&done, 2);
	/* At the end nothing may sleep. */
	await(&slept, 1);
	/* The detached one may be joined, too, by who was joining it when it was detached. */
	MODEL_CHECK(joined == 1 || (detached_it && joined == 0), "joined %d times", joined);
	announce(&made);
	await(&made, 3);
	/* If the record was freed twice, these two have the same. */
	MODEL_CHECK(fz_fiber_join(make(false), FZ_FOREVER, NULL) == 0, "join fails");
}

static void join_twice(int i)
{
	join_timed(i, false);
}

static void join_and_detach(int i)
{
	join_timed(i, true);
}

static void three_lives(void)
{
	MODEL_CHECK(lives == 3, "%d lives", lives);
	if (!detached_it)
		MODEL_CHECK(shared->thread.life & FZ_LIFE_FREE, "the record is not free");
}

SCENARIO(join_timed) = { .name = "join_timed", .what = "a thread is joined with a deadline, by another without",
	.processors = 2, .fibers = 2, .prepare = make_shared, .thread = join_twice, .finish = three_lives };

SCENARIO(join_timed_native) = { .name = "join_timed_native",
	.what = "the same, the second is a native thread", .processors = 1, .fibers = 1, .natives = 1,
	.prepare = make_shared, .thread = join_twice, .finish = three_lives };

SCENARIO(detach_timed) = { .name = "detach_timed", .what = "a thread is joined with a deadline, and detached",
	.processors = 2, .fibers = 2, .prepare = make_shared, .thread = join_and_detach,
	.finish = three_lives };

static void *live_for_a_while(void *arg)
{
	model_nap(FZ_MSEC);
	return live(arg);
}

/* It ends, is detached, and its joiner gives up, in any order: one of the three frees it. */
static void join_in_time_or_detach(int i)
{
	int err;

	if (i == 0) {
		shared = make_as(live_for_a_while, false);
		err = fz_fiber_join(shared, model_now() + FZ_MSEC, NULL);
		MODEL_CHECK(err == 0 || err == -ETIMEDOUT || err == -EINVAL || err == -ESRCH, "join: %d", err);
		joined += err == 0;
		return;
	}
	while (!shared)
		fz_sched_give_way(fz_self());
	detached_it = fz_fiber_detach(shared) == 0;
}

static void freed(void)
{
	/*
	 * The kernel thread on which the thread has ended may have been preempted before it frees it.  In each round it runs
	 * with a probability of about a half: otherwise somebody's time comes first.
	 */
	enum { ROUNDS = 200 };

	if (!joined && !detached_it)
		return;
	for (int n = 0; n < ROUNDS && !(shared->thread.life & FZ_LIFE_FREE); n++) {
		model_nap(FZ_MSEC);
		fz_sched_give_way(fz_self());
		fz_syscall0(__NR_sched_yield);
	}
	MODEL_CHECK(shared->thread.life & FZ_LIFE_FREE, "nobody has freed it");
}

SCENARIO(detach_freed) = { .name = "detach_freed", .what = "a joiner gives up, and the thread is detached: it is freed",
	.processors = 2, .fibers = 2, .prepare = make_shared, .thread = join_in_time_or_detach, .finish = freed };

/* ---- all free ones are looked for while others come ------------------------ */

static struct fz_fiber *take_from_pool(void)
{
	const struct fz_birth birth = { .stack_size = 64 * 1024, .guard_size = 4096 };
	struct fz_fiber *self = fz_self(), *f;

	fz_enter_runtime(self);
	f = fz_pool_search(&birth);
	fz_leave_runtime(self);
	MODEL_CHECK(!f || f->thread.life & FZ_LIFE_FREE, "a thread in the pool is not free");
	return f;
}

/* The scenario's own are among them, and come back. */
static void fill_pool_for_all(void)
{
	fill_pool_with(IN_POOL_MOST);
}

static void join_or_search(int i)
{
	struct fz_fiber *self = fz_self(), *f;

	if (i == 0) {
		make_and_join(i);
		return;
	}
	f = take_from_pool();
	if (!f)
		return;
	fz_enter_runtime(self);
	fz_pool_put(NULL, f);
	fz_leave_runtime(self);
}

/* The monitor may have some in its hands, and another may have been made for that. */
static void each_is_there_once(void)
{
	struct fz_fiber *f, *seen[IN_POOL_MOST + 1];
	int n = 0;

	while (n <= IN_POOL_MOST && (f = take_from_pool())) {
		for (int i = 0; i < n; i++)
			MODEL_CHECK(seen[i] != f, "a thread is in the pool twice");
		seen[n++] = f;
	}
}

SCENARIO(pool_search) = { .name = "pool_search", .what = "a fiber makes and joins, another takes all that is free",
	.processors = 2, .fibers = 2, .prepare = fill_pool_for_all, .thread = join_or_search,
	.finish = each_is_there_once };
