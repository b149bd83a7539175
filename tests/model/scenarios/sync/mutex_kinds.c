/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/mutex_kinds.c - mutexes that know their owner, and attempts: against an owner and a depth.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sched/sched.h"
#include "runtime/sync/cond.h"
#include "runtime/sync/mutex.h"

static struct fz_mutex m;
static struct fz_cond c;
static int inside;
static bool ready;

enum { LOCK, TRY, UNLOCK };

static void recursive(void)
{
	m.kind = FZ_MUTEX_RECURSIVE;
}

static void error_checking(void)
{
	m.kind = FZ_MUTEX_ERRORCHECK;
}

/* The state: depth * 16 + owner; 0 free. */
static bool owned(uint64_t *state, const struct operation *op)
{
	const uint64_t me = (uint64_t)op->thread + 1;
	const bool mine = *state % 16 == me;

	if (op->kind == UNLOCK) {
		if (op->result)
			return op->result == -EPERM && !mine && m.kind != FZ_MUTEX_NORMAL;
		*state = *state / 16 > 1 ? *state - 16 : 0;
		return mine;
	}
	if (op->result == -ETIMEDOUT)
		return op->kind == LOCK && scenario_now->clock && !mine;
	if (op->result == -EDEADLK)
		return op->kind == LOCK && mine && m.kind == FZ_MUTEX_ERRORCHECK;
	if (op->result == -EBUSY)
		return op->kind == TRY && *state && !(mine && m.kind == FZ_MUTEX_RECURSIVE);
	if (op->result || (*state && !(mine && m.kind == FZ_MUTEX_RECURSIVE)))
		return false;
	*state = (*state & ~(uint64_t)15) + 16 + me;
	return true;
}

static long take(int i, int kind)
{
	const fz_nsec deadline = scenario_now->clock ? model_now() + FZ_MSEC : FZ_FOREVER;
	int op = op_begin(i, kind, 0, 0);

	return op_end(op, kind == LOCK ? fz_mutex_lock(&m, deadline) : fz_mutex_trylock(&m));
}

static long unlock(int i)
{
	int op = op_begin(i, UNLOCK, 0, 0);

	return op_end(op, fz_mutex_unlock(&m));
}

/* With the mutex held, at any depth. */
static void stay(void)
{
	MODEL_CHECK(++inside == 1, "two threads hold the mutex");
	fz_sched_give_way(fz_self());
	MODEL_CHECK(inside-- == 1, "two threads hold the mutex");
}

static void free_again(void)
{
	MODEL_CHECK(m.lock == 0 && m.users == 0 && m.owner == 0, "the mutex is not free: %u, %u users, owner %d",
		    m.lock, m.users, m.owner);
}

/* Lock, lock or try again, and unlock once too often: the kind says what becomes of that. */
static void lock_again(int i)
{
	int depth = 0;

	if (take(i, LOCK))
		return;
	depth++;
	stay();
	depth += !take(i, i ? TRY : LOCK);
	stay();
	while (depth--)
		MODEL_CHECK(unlock(i) == 0, "unlock fails");
	unlock(i);
}

SCENARIO(mutex_recursive) = { .name = "mutex_recursive",
	.what = "2 fibers lock a recursive mutex twice, and unlock it thrice",
	.processors = 2, .fibers = 2, .prepare = recursive, .thread = lock_again, .finish = free_again,
	.apply = owned };

SCENARIO(mutex_checking) = { .name = "mutex_checking",
	.what = "the same with an error-checking one",
	.processors = 2, .fibers = 2, .prepare = error_checking, .thread = lock_again,
	.finish = free_again, .apply = owned };

SCENARIO(mutex_checking_native) = { .name = "mutex_checking_native",
	.what = "the same, the second is a native thread",
	.processors = 1, .fibers = 1, .natives = 1, .prepare = error_checking, .thread = lock_again,
	.finish = free_again, .apply = owned };

SCENARIO(mutex_timed) = { .name = "mutex_timed",
	.what = "2 fibers lock a recursive mutex with deadlines",
	.processors = 2, .fibers = 2, .prepare = recursive, .thread = lock_again, .finish = free_again,
	.apply = owned, .clock = true };

static void attempt(int i)
{
	for (int n = 0; n < 2; n++)
		if (take(i, i ? TRY : LOCK) == 0) {
			stay();
			MODEL_CHECK(take(i, TRY) == -EBUSY, "who holds it gets it again");
			unlock(i);
		}
}

SCENARIO(mutex_try) = { .name = "mutex_try",
	.what = "a fiber locks a mutex twice, 2 others try to",
	.processors = 2, .fibers = 3, .thread = attempt, .finish = free_again, .apply = owned };

/* The wait gives the mutex up at both levels, and has it at both again. */
static void wait_at_depth(int i)
{
	fz_mutex_lock(&m, FZ_FOREVER);
	if (i == 0) {
		MODEL_CHECK(fz_mutex_lock(&m, FZ_FOREVER) == 0, "locking again fails");
		while (!ready)
			MODEL_CHECK(fz_cond_wait(&c, &m, FZ_FOREVER) == 0, "the wait fails");
		stay();
		MODEL_CHECK(m.count == 2, "%u levels instead of 2", m.count);
		fz_mutex_unlock(&m);
	} else {
		ready = true;
		fz_cond_wake(&c, 1);
		stay();
	}
	MODEL_CHECK(fz_mutex_unlock(&m) == 0, "unlock fails");
}

SCENARIO(cond_recursive) = { .name = "cond_recursive",
	.what = "one waits with a recursive mutex that it has locked twice",
	.processors = 2, .fibers = 2, .prepare = recursive, .thread = wait_at_depth, .finish = free_again };
