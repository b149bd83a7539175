/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/lot.c - the parking lot: each wake-up reaches one waiter, and a wait that ends
 * otherwise takes none.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sched/cancel.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

static _Atomic uint32_t word, other;
static _Atomic int woken, went_on, ended_otherwise, moved;
static struct fz_fiber *_Atomic waiters[4];

static void wait_once(int i, fz_nsec deadline)
{
	int ret;

	waiters[i] = fz_self();
	ret = fz_lot_wait(&word, 0, deadline, FZ_WAIT_CANCEL);
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
		wait_once(i, model_now() + (i ? FZ_MSEC : 2 * FZ_MSEC));
	else
		woken += (int)fz_lot_wake(&word, 1);
}

SCENARIO(lot_timed) = { .name = "lot_timed", .what = "2 wait with deadlines, one wake-up",
	.processors = 2, .fibers = 3, .thread = two_timed, .finish = as_many, .clock = true };

/* As pthread_cancel does it (preload/thread/cancel.c). */
static void cancel(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();

	atomic_fetch_or_explicit(fz_tcb_cancelhandling(f->tcb), FZ_CANCEL_CANCELED,
				 memory_order_seq_cst);
	atomic_store_explicit(&f->cancel.sent, true, memory_order_seq_cst);
	fz_enter_runtime(self);
	fz_wake_cancelled(f);
	fz_leave_runtime(self);
}

static void cancelled(int i)
{
	if (i == 0) {
		wait_once(i, FZ_FOREVER);
		return;
	}
	while (!waiters[0])
		fz_sched_give_way(fz_self());
	woken += (int)fz_lot_wake(&word, 1);
	cancel(waiters[0]);
}

static void cancelled_or_woken(void)
{
	MODEL_CHECK(woken == went_on && went_on + ended_otherwise == 1, "%d wake-ups, %d waits ended by one",
		    woken, went_on);
}

SCENARIO(lot_cancel) = { .name = "lot_cancel", .what = "a wait is woken and cancelled", .processors = 2,
	.fibers = 2, .thread = cancelled, .finish = cancelled_or_woken };

static void requeued(int i)
{
	struct fz_lot_requeue order = { .wake = 1, .move = 1 };

	if (i < 2) {
		wait_once(i, FZ_FOREVER);
		return;
	}
	while (woken + moved < 2) {
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
		wait_once(i, model_now() + FZ_MSEC);
	else
		woken += (int)fz_lot_wake(&word, 2);
}

SCENARIO(lot_native) = { .name = "lot_native", .what = "2 native threads wait with deadlines, a fiber wakes",
	.processors = 1, .fibers = 0, .natives = 3, .thread = by_natives, .finish = as_many,
	.clock = true };
