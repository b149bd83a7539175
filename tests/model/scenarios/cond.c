/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/cond.c - condition variables: no signal is lost, none wakes in vain for ever,
 * and a destroyed one is not touched any more.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>
#include <string.h>

#include "runtime/sync/cond.h"

static struct fz_mutex m;
static struct fz_cond c;
static int items, taken, ready, timed_out;

static void take_one(void)
{
	fz_mutex_lock(&m, FZ_FOREVER);
	while (!items)
		MODEL_CHECK(fz_cond_wait(&c, &m, FZ_FOREVER) == 0, "the wait fails");
	items--;
	taken++;
	fz_mutex_unlock(&m);
}

static void put_one(void)
{
	fz_mutex_lock(&m, FZ_FOREVER);
	items++;
	fz_cond_wake(&c, 1);
	fz_mutex_unlock(&m);
}

/* The last thread puts one item for each of the others. */
static void produce_or_consume(int i)
{
	const int consumers = (int)(scenario_now->fibers + scenario_now->natives) - 1;

	if (i < consumers)
		take_one();
	else
		for (int n = 0; n < consumers; n++)
			put_one();
}

static void all_taken(void)
{
	const int consumers = (int)(scenario_now->fibers + scenario_now->natives) - 1;

	MODEL_CHECK(taken == consumers && !items, "%d taken, %d left", taken, items);
	MODEL_CHECK(fz_cond_is_idle(&c), "a waiter is counted that has left");
}

SCENARIO(cond_signal) = { .name = "cond_signal", .what = "2 consumers wait, a producer signals twice",
	.processors = 2, .fibers = 3, .thread = produce_or_consume, .finish = all_taken };

SCENARIO(cond_native) = { .name = "cond_native", .what = "a fiber waits, a native thread signals",
	.processors = 1, .fibers = 1, .natives = 1, .thread = produce_or_consume,
	.finish = all_taken };

SCENARIO(cond_native2) = { .name = "cond_native2", .what = "a native thread waits, another signals",
	.processors = 1, .fibers = 0, .natives = 2, .thread = produce_or_consume,
	.finish = all_taken };

/* Signal after the mutex has been unlocked, without it. */
static void broadcast(int i)
{
	if (i < 2) {
		fz_mutex_lock(&m, FZ_FOREVER);
		while (!ready)
			fz_cond_wait(&c, &m, FZ_FOREVER);
		taken++;
		fz_mutex_unlock(&m);
		return;
	}
	fz_mutex_lock(&m, FZ_FOREVER);
	ready = 1;
	fz_mutex_unlock(&m);
	fz_cond_wake(&c, UINT32_MAX);
}

static void both_taken(void)
{
	MODEL_CHECK(taken == 2, "%d went on", taken);
}

SCENARIO(cond_broadcast) = { .name = "cond_broadcast",
	.what = "2 wait, a third broadcasts without the mutex", .processors = 2, .fibers = 3,
	.thread = broadcast, .finish = both_taken };

/* The waiter may time out, but then the item is still there. */
static void wait_with_deadline(int i)
{
	if (i) {
		put_one();
		return;
	}
	fz_mutex_lock(&m, FZ_FOREVER);
	while (!items && !timed_out)
		timed_out = fz_cond_wait(&c, &m, model_now() + FZ_MSEC) == -ETIMEDOUT;
	if (items) {
		items--;
		taken++;
	}
	fz_mutex_unlock(&m);
}

static void taken_or_left(void)
{
	MODEL_CHECK(taken + items == 1, "%d taken, %d left", taken, items);
	MODEL_CHECK(taken || timed_out, "it went on without a reason");
	MODEL_CHECK(fz_cond_is_idle(&c), "a waiter is counted that has left");
}

SCENARIO(cond_timed) = { .name = "cond_timed", .what = "a wait with a deadline races with a signal",
	.processors = 2, .fibers = 2, .thread = wait_with_deadline, .finish = taken_or_left };

/* POSIX allows to destroy it right after the broadcast. */
static void destroy(int i)
{
	if (i == 0) {
		fz_mutex_lock(&m, FZ_FOREVER);
		ready++;
		while (!items)
			fz_cond_wait(&c, &m, FZ_FOREVER);
		fz_mutex_unlock(&m);
		return;
	}
	fz_mutex_lock(&m, FZ_FOREVER);
	items = 1;
	fz_cond_wake(&c, UINT32_MAX);
	fz_mutex_unlock(&m);
	fz_cond_destroy(&c);
	c.waiters = 7777 * 2;
	c.sequence = 7777;
}

static void untouched(void)
{
	MODEL_CHECK(c.waiters == 7777 * 2 && c.sequence == 7777, "a destroyed one was touched");
}

SCENARIO(cond_destroy) = { .name = "cond_destroy", .what = "it is destroyed while its waiter wakes",
	.processors = 2, .fibers = 2, .thread = destroy, .finish = untouched };
