/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/cond.c - condition variables, against a count of those who wait and of those who
 * are woken; a destroyed one is not touched any more.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>
#include <limits.h>
#include <string.h>

#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/cond.h"

static struct fz_mutex m;
static struct fz_cond c;
static int items, taken, ready, timed_out;

/*
 * A wait is three operations, which begin and end together: the thread lets go of the mutex and sleeps; it is woken, or its
 * deadline comes; it takes the mutex again.  A signal wakes at least as many as it should: a thread that is not yet
 * in the lot finds the sequence changed, and goes on beside the one that the lot gives up.  But none goes on before
 * there has been a signal since it went to sleep.
 */
enum { LOCK, UNLOCK, SLEEP, GO_ON, LOCK_AGAIN, SIGNAL };

struct count {
	uint8_t locked, sleeping, woken;
	uint8_t asleep, awake;		/* a bit for each thread in a wait */
	uint8_t signalled;		/* a bit for each that has slept during a signal */
};

static bool go_on(struct count *n, const struct operation *op, uint8_t thread)
{
	if (!(n->asleep & thread))
		return false;
	n->asleep ^= thread;
	n->awake |= thread;
	if (op->result == -ETIMEDOUT)
		return n->sleeping-- > 0;
	if (op->result != 0 || !(n->signalled & thread))
		return false;
	if (n->woken)
		n->woken--;
	else
		n->sleeping--;
	return true;
}

static bool sleepers(uint64_t *state, const struct operation *op)
{
	const uint8_t thread = (uint8_t)(1 << op->thread);
	struct count n;
	bool allowed = op->result == 0 || op->kind == GO_ON;

	memcpy(&n, state, sizeof(n));
	switch (op->kind) {
	case LOCK_AGAIN:
		allowed &= n.awake & thread && !n.locked;
		n.awake &= (uint8_t)~thread;
		n.locked = true;
		break;
	case LOCK:
		allowed &= !n.locked;
		n.locked = true;
		break;
	case SLEEP:
		n.sleeping++;
		n.asleep |= thread;
		n.signalled &= (uint8_t)~thread;
		n.locked = false;
		break;
	case UNLOCK:
		n.locked = false;
		break;
	case GO_ON:
		allowed = go_on(&n, op, thread);
		break;
	default:
		n.signalled |= n.asleep;
		for (int left = op->arg; left > 0 && n.sleeping > 0; left--) {
			n.sleeping--;
			n.woken++;
		}
	}
	memcpy(state, &n, sizeof(n));
	return allowed;
}

static void lock(int i)
{
	int op = op_begin(i, LOCK, 0, 0);

	op_end(op, fz_mutex_lock(&m, FZ_FOREVER));
}

static void unlock(int i)
{
	int op = op_begin(i, UNLOCK, 0, 0);

	op_end(op, fz_mutex_unlock(&m));
}

static long wait(int i, fz_nsec deadline)
{
	const int sleep = op_begin(i, SLEEP, 0, 0), go_on = op_begin(i, GO_ON, 0, 0);
	const int lock = op_begin(i, LOCK_AGAIN, 0, 0);
	long ret = fz_cond_wait(&c, &m, deadline);

	op_end(sleep, 0);
	op_end(lock, 0);
	return op_end(go_on, ret);
}

static void wake(int i, uint32_t n)
{
	int op = op_begin(i, SIGNAL, 0, n > INT_MAX ? INT_MAX : (int)n);

	fz_cond_wake(&c, n);
	op_end(op, 0);
}

static void take_one(int i)
{
	lock(i);
	while (!items)
		MODEL_CHECK(wait(i, FZ_FOREVER) == 0, "the wait fails");
	items--;
	taken++;
	unlock(i);
}

static void put_one(int i)
{
	lock(i);
	items++;
	wake(i, 1);
	unlock(i);
}

/* The last thread puts one item for each of the others. */
static void produce_or_consume(int i)
{
	const int consumers = (int)(scenario_now->fibers + scenario_now->natives) - 1;

	if (i < consumers)
		take_one(i);
	else
		for (int n = 0; n < consumers; n++)
			put_one(i);
}

static void all_taken(void)
{
	const int consumers = (int)(scenario_now->fibers + scenario_now->natives) - 1;

	MODEL_CHECK(taken == consumers && !items, "%d taken, %d left", taken, items);
	MODEL_CHECK(fz_cond_is_idle(&c), "a waiter is counted that has left");
}

SCENARIO(cond_signal) = { .name = "cond_signal", .what = "2 consumers wait, a producer signals twice",
	.processors = 2, .fibers = 3, .thread = produce_or_consume, .finish = all_taken, .apply = sleepers };

SCENARIO(cond_native) = { .name = "cond_native", .what = "a fiber waits, a native thread signals",
	.processors = 1, .fibers = 1, .natives = 1, .thread = produce_or_consume,
	.finish = all_taken, .apply = sleepers };

SCENARIO(cond_native2) = { .name = "cond_native2", .what = "a native thread waits, another signals",
	.processors = 1, .fibers = 0, .natives = 2, .thread = produce_or_consume,
	.finish = all_taken };

/* Signal after the mutex has been unlocked, without it. */
static void broadcast(int i)
{
	if (i < 2) {
		lock(i);
		while (!ready)
			wait(i, FZ_FOREVER);
		taken++;
		unlock(i);
		return;
	}
	lock(i);
	ready = 1;
	unlock(i);
	wake(i, UINT32_MAX);
}

static void both_taken(void)
{
	MODEL_CHECK(taken == 2, "%d went on", taken);
}

SCENARIO(cond_broadcast) = { .name = "cond_broadcast",
	.what = "2 wait, a third broadcasts without the mutex", .processors = 2, .fibers = 3,
	.thread = broadcast, .finish = both_taken, .apply = sleepers };

/* The waiter may time out, but then the item is still there. */
static void wait_with_deadline(int i)
{
	if (i) {
		put_one(i);
		return;
	}
	lock(i);
	while (!items && !timed_out)
		timed_out = wait(i, model_now() + FZ_MSEC) == -ETIMEDOUT;
	if (items) {
		items--;
		taken++;
	}
	unlock(i);
}

static void taken_or_left(void)
{
	MODEL_CHECK(taken + items == 1, "%d taken, %d left", taken, items);
	MODEL_CHECK(taken || timed_out, "it went on without a reason");
	MODEL_CHECK(fz_cond_is_idle(&c), "a waiter is counted that has left");
}

SCENARIO(cond_timed) = { .name = "cond_timed", .what = "a wait with a deadline races with a signal",
	.processors = 2, .fibers = 2, .thread = wait_with_deadline, .finish = taken_or_left, .apply = sleepers };

/* POSIX allows to destroy it right after the broadcast. */
static void destroy(int i)
{
	if (i == 0) {
		lock(i);
		ready++;
		while (!items)
			wait(i, FZ_FOREVER);
		unlock(i);
		return;
	}
	lock(i);
	items = 1;
	wake(i, UINT32_MAX);
	unlock(i);
	fz_cond_destroy(&c);
	c.waiters = 7777 * 2;
	c.sequence = 7777;
}

static void untouched(void)
{
	MODEL_CHECK(c.waiters == 7777 * 2 && c.sequence == 7777, "a destroyed one was touched");
}

SCENARIO(cond_destroy) = { .name = "cond_destroy", .what = "it is destroyed while its waiter wakes",
	.processors = 2, .fibers = 2, .thread = destroy, .finish = untouched, .apply = sleepers };

/* A handler interrupts the wait, which goes on after it: a signal that comes meanwhile is not lost. */
static struct fz_fiber *_Atomic sleeper;

static void take_or_interrupt(int i)
{
	struct fz_fiber *self = fz_self();

	if (i == 0) {
		sleeper = self;
		take_one(i);
	} else if (i == 1) {
		put_one(i);
	} else {
		while (!sleeper)
			fz_sched_give_way(self);
		fz_enter_runtime(self);
		fz_wake_any(sleeper, FZ_WHY_SIGNAL);
		fz_leave_runtime(self);
	}
}

static void one_taken(void)
{
	MODEL_CHECK(taken == 1 && !items, "%d taken, %d left", taken, items);
	MODEL_CHECK(fz_cond_is_idle(&c), "a waiter is counted that has left");
}

SCENARIO(cond_interrupted) = { .name = "cond_interrupted",
	.what = "a handler interrupts the waiter while another signals", .processors = 2, .fibers = 3,
	.thread = take_or_interrupt, .finish = one_taken, .apply = sleepers };
