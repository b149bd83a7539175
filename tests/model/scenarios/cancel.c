/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/cancel.c - a cancellation request comes at any moment before or in a wait: it is
 * never lost, and takes no wake-up from anybody.
 */
#include "tests/model/scenario.h"

#include "runtime/base/host.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

static _Atomic uint32_t word;
static _Atomic int woken, went_on, ended_otherwise;
static struct fz_fiber *_Atomic waiter;
static _Atomic bool obeyed, found_obedient;

/* As pthread_cancel does it (preload/thread/cancel.c). */
static void cancel(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();

	atomic_fetch_or_explicit(fz_tcb_cancelhandling(fz_tcb_of(f)), FZ_CANCEL_CANCELED,
				 memory_order_seq_cst);
	atomic_store_explicit(&f->cancel.sent, true, memory_order_seq_cst);
	fz_enter_runtime(self);
	fz_wake_cancelled(f);
	fz_leave_runtime(self);
}

static void await_waiter(void)
{
	while (!waiter)
		fz_sched_give_way(fz_self());
}

static void in_the_lot(int i)
{
	if (i == 0) {
		waiter = fz_self();
		if (fz_lot_wait(&word, 0, FZ_FOREVER, FZ_WAIT_CANCEL) == 0)
			went_on++;
		else
			ended_otherwise++;
		return;
	}
	await_waiter();
	woken += (int)fz_lot_wake(&word, 1);
	cancel(waiter);
}

static void cancelled_or_woken(void)
{
	MODEL_CHECK(woken == went_on && went_on + ended_otherwise == 1, "%d wake-ups, %d waits ended by one",
		    woken, went_on);
}

SCENARIO(lot_cancel) = { .name = "lot_cancel", .what = "a wait is woken and cancelled", .processors = 2,
	.fibers = 2, .thread = in_the_lot, .finish = cancelled_or_woken };

/*
 * Without a lock between the arming of the wait and the look for requests, which would empty the store
 * buffer.  Each wait has another look: fz_wait_context_saved(), or block() of a native thread.
 */
static void asleep(int i)
{
	if (i == 0) {
		waiter = fz_self();
		if (fz_sleep(fz_self(), FZ_FOR_TIME, FZ_FOREVER, FZ_WAIT_CANCEL) == FZ_WHY_CANCEL)
			ended_otherwise++;
		return;
	}
	await_waiter();
	cancel(waiter);
}

SCENARIO(sleep_cancel) = { .name = "sleep_cancel", .what = "a fiber sleeps for ever and is cancelled",
	.processors = 2, .fibers = 2, .thread = asleep, .finish = cancelled_or_woken };

SCENARIO(sleep_cancel_native) = { .name = "sleep_cancel_native", .what = "so does a native thread",
	.processors = 1, .natives = 2, .thread = asleep, .finish = cancelled_or_woken };

/* ---- the asynchronous type ------------------------------------------------- */

/* glibc's bit. */
enum { ASYNCHRONOUS = 2 };

static void cancel_at_any_time(struct fz_fiber *self)
{
	atomic_fetch_or_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)), ASYNCHRONOUS, memory_order_seq_cst);
}

/* Who wakes it has its ticket, or its place in a list: nothing else may end this wait. */
static void uninterruptible(int i)
{
	if (i == 0) {
		cancel_at_any_time(fz_self());
		waiter = fz_self();
		MODEL_CHECK(fz_sleep(fz_self(), FZ_FOR_RUNTIME, model_now() + FZ_MSEC, FZ_WAIT_UNINTERRUPTIBLE) ==
			    FZ_WHY_TIMEOUT, "a request ends a wait that must not be interrupted");
		ended_otherwise++;
		return;
	}
	await_waiter();
	cancel(waiter);
}

SCENARIO(cancel_deaf) = { .name = "cancel_deaf",
	.what = "a fiber is cancelled in a wait that must not be interrupted", .processors = 2, .fibers = 2,
	.thread = uninterruptible, .finish = cancelled_or_woken };

static void obey(void)
{
	obeyed = true;
}

static void note_obedience(void)
{
	fz_host.test_cancel = obey;
}

/* A request comes while it is deferred: the thread finds it at the end of that, or the other that it is not deferred. */
static void deferred(int i)
{
	struct fz_fiber *self = fz_self();
	struct fz_fiber *f;

	if (i == 0) {
		cancel_at_any_time(self);
		fz_cancel_defer(self);
		waiter = self;
		fz_cancel_undefer(self);
		went_on = obeyed;
		/* The end of a thread defers, too. */
		await(&word, 1);
		return;
	}
	await_waiter();
	f = waiter;
	atomic_fetch_or_explicit(fz_tcb_cancelhandling(fz_tcb_of(f)), FZ_CANCEL_CANCELED, memory_order_seq_cst);
	atomic_store_explicit(&f->cancel.sent, true, memory_order_seq_cst);
	found_obedient = fz_cancel_is_asynchronous(f);
	announce(&word);
}

static void obeyed_or_found(void)
{
	MODEL_CHECK(went_on || found_obedient, "a request that came while it was deferred is overlooked");
}

SCENARIO(cancel_deferred) = { .name = "cancel_deferred", .what = "a request comes when its deferral ends",
	.processors = 2, .fibers = 2, .prepare = note_obedience, .thread = deferred, .finish = obeyed_or_found };
