/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sync/lot.c - the parking lot: each wake-up reaches one waiter, and a wait that ends
 * otherwise takes none.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/base/sys.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"
#include "runtime/sync/lot.h"

static _Atomic uint32_t word, other;
static _Atomic int woken, went_on, ended_otherwise, moved;

static void wait_once(fz_nsec deadline)
{
	int ret = fz_lot_wait(&word, 0, deadline, FZ_WAIT_CANCEL);

	if (ret == 0)
		went_on++;
	else
		ended_otherwise++;
}

static void as_many(void)
{
	MODEL_CHECK(woken == went_on, "%d wake-ups, %d waits ended by one", woken, went_on);
	MODEL_CHECK(went_on + ended_otherwise == 2, "%d of 2 waits ended", went_on + ended_otherwise);
}

static void two_timed(int i)
{
	if (i < 2)
		wait_once(model_now() + (i ? FZ_MSEC : 2 * FZ_MSEC));
	else
		woken += (int)fz_lot_wake(&word, 1);
}

SCENARIO(lot_timed) = { .name = "lot_timed", .what = "2 wait with deadlines, one wake-up",
	.processors = 2, .fibers = 3, .thread = two_timed, .finish = as_many };

/*
 * What comes late, a deadline or a wake-up, is for a wait that is over, and ends none after it: only
 * the thread that has set `other` wakes the second wait, which has no deadline.
 */
static void one_after_the_other(int i)
{
	struct fz_fiber *self = fz_self();
	const uint64_t before = self->wait;
	int ret;

	if (i == 0) {
		wait_once(model_now() + FZ_MSEC);
		/* As a new native thread in the memory of this one: its waits have the same numbers. */
		if (self->kind == FZ_KIND_NATIVE)
			self->wait = before;
		ret = fz_lot_wait(&other, 0, FZ_FOREVER, 0);
		MODEL_CHECK(ret == 0 || ret == -EAGAIN, "the second wait ends with %d", ret);
		MODEL_CHECK(other == 1, "the second wait ends, and nobody has woken it");
		return;
	}
	woken += (int)fz_lot_wake(&word, 1);
	model_nap(2 * FZ_MSEC);
	other = 1;
	fz_lot_wake(&other, 1);
}

static void one_wait(void)
{
	MODEL_CHECK(woken == went_on && went_on + ended_otherwise == 1, "%d wake-ups, %d waits ended by one",
		    woken, went_on);
}

SCENARIO(lot_late) = { .name = "lot_late", .what = "a wait with a deadline is woken, and another one follows",
	.processors = 2, .fibers = 2, .thread = one_after_the_other, .finish = one_wait };

SCENARIO(lot_native_late) = { .name = "lot_native_late",
	.what = "a native thread waits and ends, another one in its memory waits", .processors = 1,
	.natives = 2, .thread = one_after_the_other, .finish = one_wait };

/* The second wait has a deadline, too, which is not that of the first. */
static void one_deadline_after_the_other(int i)
{
	fz_nsec deadline;

	if (i) {
		woken += (int)fz_lot_wake(&word, 1);
		return;
	}
	wait_once(model_now() + FZ_MSEC);
	deadline = model_now() + 3 * FZ_MSEC;
	MODEL_CHECK(fz_lot_wait(&other, 0, deadline, 0) == -ETIMEDOUT, "the second wait ends otherwise");
	MODEL_CHECK(model_now() >= deadline, "the second wait times out early");
}

SCENARIO(lot_timed_late) = { .name = "lot_timed_late", .what = "a wait with a deadline is woken, and another with one follows",
	.processors = 2, .fibers = 2, .thread = one_deadline_after_the_other, .finish = one_wait };

static void requeued(int i)
{
	struct fz_lot_requeue order = { .wake = 1, .move = 1 }, none = { .wake = 0 };

	if (i < 2) {
		wait_once(FZ_FOREVER);
		return;
	}
	while (woken + moved < 2) {
		/* One of the two directions is against the order of the buckets, which addresses decide. */
		fz_lot_requeue(&other, &word, NULL, &none);
		fz_lot_requeue(&word, &other, NULL, &order);
		woken += (int)order.woken;
		moved += (int)order.moved;
		woken += (int)fz_lot_wake(&other, 1);
		fz_sched_give_way(fz_self());
		if (woken == 2)
			break;
	}
	while (woken < 2) {
		woken += (int)fz_lot_wake(&other, 1);
		woken += (int)fz_lot_wake(&word, 1);
		fz_sched_give_way(fz_self());
	}
}

SCENARIO(lot_requeue) = { .name = "lot_requeue", .what = "2 wait, a third moves one and wakes both",
	.processors = 2, .fibers = 3, .thread = requeued, .finish = as_many };

static void by_natives(int i)
{
	if (i < 2)
		wait_once(model_now() + FZ_MSEC);
	else
		woken += (int)fz_lot_wake(&word, 2);
}

SCENARIO(lot_native) = { .name = "lot_native", .what = "2 native threads wait with deadlines, a fiber wakes",
	.processors = 1, .fibers = 0, .natives = 3, .thread = by_natives, .finish = as_many };

/* A fiber that must stay on its kernel thread, in libc's fork for example, blocks that, and all signals. */
static void blocking_its_kernel_thread(int i)
{
	uint64_t mask;

	if (i) {
		while (!woken)
			woken += (int)fz_lot_wake(&word, 1);
		return;
	}
	fz_sys_sigmask(HOW_BLOCK, &(uint64_t){ ~(uint64_t)0 }, &mask);
	fz_self()->call.blocks = true;
	wait_once(FZ_FOREVER);
	fz_self()->call.blocks = false;
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
}

SCENARIO(lot_blocks) = { .name = "lot_blocks", .what = "a fiber that blocks its kernel thread waits",
	.processors = 1, .fibers = 1, .natives = 1, .thread = blocking_its_kernel_thread, .finish = one_wait };

/* In a call that it has announced it has no processor to put the other one on, and may stay there until that has run. */
static void wake_in_call(int i)
{
	if (i) {
		while (!word)
			fz_lot_wait(&word, 0, FZ_FOREVER, 0);
		other = 1;
		fz_sys_futex_wake(&other, 1);
		return;
	}
	fz_announce(fz_self());
	word = 1;
	fz_lot_wake_staying(&word, 1);
	while (!other)
		fz_sys_futex_wait(&other, 0, NULL);
	fz_announce_end(fz_self());
}

SCENARIO(lot_staying) = { .name = "lot_staying", .what = "a fiber wakes another without entering the runtime",
	.processors = 2, .fibers = 2, .thread = wake_in_call };

/* A wake-up of all is one step, although it wakes a few at a time: AT_A_TIME of lot.c is less than this. */
enum { ALL = 5 };

static _Atomic uint32_t ready;

static void wait_with_all(void)
{
	announce(&ready);
	fz_lot_wait(&word, 0, FZ_FOREVER, 0);
}

/* That all wait is to be seen by a requeue only, which counts those that it leaves where they are. */
static void wake_when_all_wait(void)
{
	struct fz_lot_requeue count = { .move = UINT32_MAX };
	uint32_t all;

	await(&ready, ALL);
	while (fz_lot_requeue(&word, &word, NULL, &count) && count.moved < ALL)
		model_nap(FZ_MSEC);
	all = fz_lot_wake(&word, UINT32_MAX);
	MODEL_CHECK(all == ALL, "a call wakes %u, and %d waited", all, ALL);
}

/* The first to be woken wakes one more: not one whom the call owes a wake-up, but the thread that has come since. */
static void wake_latecomer(int i)
{
	if (i == ALL + 1) {
		wake_when_all_wait();
	} else if (i == ALL) {
		await(&other, 1);
		announce(&other);
		fz_lot_wait(&word, 0, FZ_FOREVER, 0);
	} else {
		wait_with_all();
		if (i > 0)
			return;
		announce(&other);
		await(&other, 2);
		word = 1;
		fz_lot_wake(&word, 1);
	}
}

SCENARIO(lot_all) = { .name = "lot_all", .what = "5 are woken in one call, and one of them wakes a thread that has come since",
	.processors = 1, .fibers = ALL + 1, .natives = 1, .thread = wake_latecomer };

/* Who waits again at once is not woken again: with enough of them, the call would not end. */
static void come_again(int i)
{
	if (i == ALL) {
		wake_when_all_wait();
		word = 1;
		fz_lot_wake(&word, 1);
		return;
	}
	wait_with_all();
	while (i == 0 && !word)
		fz_lot_wait(&word, 0, FZ_FOREVER, 0);
}

SCENARIO(lot_again) = { .name = "lot_again", .what = "5 are woken in one call, and the first waits again",
	.processors = 1, .fibers = ALL, .natives = 1, .thread = come_again };

/* A wait whose time is over while the call owes it a wake-up has been woken. */
static void all_timed(int i)
{
	if (i < ALL)
		wait_once(model_now() + FZ_MSEC);
	else
		woken += (int)fz_lot_wake(&word, UINT32_MAX);
}

static void all_ended(void)
{
	MODEL_CHECK(woken == went_on, "%d wake-ups, %d waits ended by one", woken, went_on);
	MODEL_CHECK(went_on + ended_otherwise == ALL, "%d of %d waits ended", went_on + ended_otherwise, ALL);
}

SCENARIO(lot_all_timed) = { .name = "lot_all_timed", .what = "5 wait with deadlines, and are woken in one call",
	.processors = 2, .fibers = ALL, .natives = 1, .thread = all_timed, .finish = all_ended };
