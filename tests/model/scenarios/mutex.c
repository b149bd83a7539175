/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/mutex.c - mutexes: one thread at a time, and nobody waits for ever.
 */
#include "tests/model/scenario.h"

#include "runtime/sync/mutex.h"

static struct fz_mutex m;
static int inside, entered;

static void lock_twice(int i)
{
	(void)i;
	for (int n = 0; n < 2; n++) {
		MODEL_CHECK(fz_mutex_lock(&m, FZ_FOREVER) == 0, "lock fails");
		MODEL_CHECK(++inside == 1, "two threads hold the mutex");
		entered++;
		inside--;
		MODEL_CHECK(fz_mutex_unlock(&m) == 0, "unlock fails");
	}
}

static void entered_all(void)
{
	MODEL_CHECK(entered == 2 * (int)scenario_now->fibers + 2 * (int)scenario_now->natives,
		    "%d entries", entered);
	MODEL_CHECK(m.lock == 0 && m.users == 0, "the mutex is not free");
}

SCENARIO(mutex2) = { .name = "mutex2", .what = "2 fibers lock a mutex twice, on 2 processors",
	.processors = 2, .fibers = 2, .thread = lock_twice, .finish = entered_all };

SCENARIO(mutex3) = { .name = "mutex3", .what = "3 fibers lock a mutex twice, on 2 processors",
	.processors = 2, .fibers = 3, .thread = lock_twice, .finish = entered_all };

SCENARIO(mutex_native) = { .name = "mutex_native",
	.what = "a fiber and a native thread lock a mutex twice", .processors = 1, .fibers = 1,
	.natives = 1, .thread = lock_twice, .finish = entered_all };
