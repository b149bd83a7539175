/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/sem.c - semaphores, against a counter that waits while it is 0.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sync/sem.h"

static struct fz_sem s;
static _Atomic int waits_that_ended;

enum { POST, WAIT, TRY };

static bool counter(uint64_t *state, const struct operation *op)
{
	switch (op->kind) {
	case POST:
		(*state)++;
		return op->result == 0;
	case WAIT:
		/* It may time out at any time, and then it takes nothing. */
		if (op->result == -ETIMEDOUT)
			return true;
		return op->result == 0 && (*state)-- > 0;
	default:
		if (op->result == -EAGAIN)
			return *state == 0;
		return op->result == 0 && (*state)-- > 0;
	}
}

static void post(int i)
{
	int op = op_begin(i, POST, 0, 0);

	op_end(op, fz_sem_post(&s));
}

static void wait(int i, fz_nsec deadline)
{
	int op = op_begin(i, WAIT, 0, 0);

	if (op_end(op, fz_sem_wait(&s, deadline)) == 0)
		waits_that_ended++;
}

static void nobody_waits(void)
{
	MODEL_CHECK(s.both >> 32 == 0, "a waiter is counted that has left");
}

static void two_wait(int i)
{
	if (i < 2) {
		wait(i, FZ_FOREVER);
	} else {
		post(i);
		post(i);
	}
}

SCENARIO(sem) = { .name = "sem", .what = "2 wait, a third posts twice", .processors = 2, .fibers = 3,
	.thread = two_wait, .finish = nobody_waits, .apply = counter };

SCENARIO(sem_apart) = { .name = "sem_apart", .what = "2 wait, a third posts twice, on 3 processors",
	.processors = 3, .fibers = 3, .thread = two_wait, .finish = nobody_waits, .apply = counter };

SCENARIO(sem_native) = { .name = "sem_native", .what = "a fiber and a native thread wait, another posts",
	.processors = 1, .fibers = 1, .natives = 2, .thread = two_wait, .finish = nobody_waits,
	.apply = counter };

static void try_and_wait(int i)
{
	int op;

	if (i == 0) {
		wait(i, FZ_FOREVER);
		return;
	}
	if (i == 1) {
		post(i);
		op = op_begin(i, TRY, 0, 0);
		if (op_end(op, fz_sem_trywait(&s)) == 0)
			post(i);
		return;
	}
}

SCENARIO(sem_try) = { .name = "sem_try", .what = "one waits, one posts, tries, and posts again",
	.processors = 2, .fibers = 2, .thread = try_and_wait, .finish = nobody_waits,
	.apply = counter };

static void timed(int i)
{
	if (i)
		post(i);
	else
		wait(i, model_now() + FZ_MSEC);
}

static void post_is_not_lost(void)
{
	nobody_waits();
	MODEL_CHECK((int)(uint32_t)s.both + waits_that_ended == 1, "the post is lost");
}

SCENARIO(sem_timed) = { .name = "sem_timed", .what = "a wait with a deadline races with a post",
	.processors = 2, .fibers = 2, .thread = timed, .finish = post_is_not_lost, .apply = counter };
