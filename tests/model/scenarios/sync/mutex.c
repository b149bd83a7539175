/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/mutex.c - mutexes, against an owner: one thread at a time, and nobody waits for ever.
 */
#include "tests/model/scenario.h"

#include "runtime/sync/mutex.h"

static struct fz_mutex m;
static int inside, entered;

enum { LOCK, UNLOCK };

static bool owner(uint64_t *state, const struct operation *op)
{
	const uint64_t me = (uint64_t)op->thread + 1, before = *state;

	*state = op->kind == LOCK ? me : 0;
	return op->result == 0 && before == (op->kind == LOCK ? 0 : me);
}

static void lock_twice(int i)
{
	int op;

	for (int n = 0; n < 2; n++) {
		op = op_begin(i, LOCK, 0, 0);
		MODEL_CHECK(op_end(op, fz_mutex_lock(&m, FZ_FOREVER)) == 0, "lock fails");
		MODEL_CHECK(++inside == 1, "two threads hold the mutex");
		entered++;
		inside--;
		op = op_begin(i, UNLOCK, 0, 0);
		MODEL_CHECK(op_end(op, fz_mutex_unlock(&m)) == 0, "unlock fails");
	}
}

static void entered_all(void)
{
	MODEL_CHECK(entered == 2 * (int)scenario_now->fibers + 2 * (int)scenario_now->natives,
		    "%d entries", entered);
	MODEL_CHECK(m.lock == 0 && m.users == 0, "the mutex is not free");
}

SCENARIO(mutex2) = { .name = "mutex2", .what = "2 fibers lock a mutex twice, on 2 processors",
	.processors = 2, .fibers = 2, .thread = lock_twice, .finish = entered_all, .apply = owner };

SCENARIO(mutex3) = { .name = "mutex3", .what = "3 fibers lock a mutex twice, on 2 processors",
	.processors = 2, .fibers = 3, .thread = lock_twice, .finish = entered_all, .apply = owner };

SCENARIO(mutex_apart) = { .name = "mutex_apart", .what = "3 fibers lock a mutex twice, on 3 processors",
	.processors = 3, .fibers = 3, .thread = lock_twice, .finish = entered_all, .apply = owner };

SCENARIO(mutex_native) = { .name = "mutex_native",
	.what = "a fiber and a native thread lock a mutex twice", .processors = 1, .fibers = 1,
	.natives = 1, .thread = lock_twice, .finish = entered_all, .apply = owner };
