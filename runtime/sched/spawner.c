/* SPDX-License-Identifier: MIT */
#include "runtime/sched/spawner.h"

#include "runtime/base/host.h"
#include "runtime/base/lock.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/signal/signal.h"

/* A fiber that waits for the turn or for a spare carrier; on its stack. */
struct waiter {
	struct fz_ticket ticket;
	struct waiter *next;
	bool failed;			/* the spawner could not make a carrier */
};

static struct {
	_Atomic uint32_t wanted;	/* futex; 1: asked for, and the spawner has not seen it */
	_Atomic bool wanted_mortal;
	struct fz_lock lock;
	/* Guarded by lock. */
	bool taken;			/* a fiber has the turn */
	struct waiter *first, *last;	/* for the turn, in the order of their arrival */
	struct waiter *for_spare;	/* the fiber that has the turn, if it waits for a spare; or NULL */
} spawner = { .lock = FZ_LOCK(FZ_RANK_CARRIERS) };

/* How many turns of the calling thread are open; written in the runtime. */
static __thread uint32_t turns;

static void ask(void)
{
	/* release: pairs with the acquire in fz_spawner_run(). */
	if (!atomic_exchange_explicit(&spawner.wanted, 1, memory_order_release))
		fz_sys_futex_wake(&spawner.wanted, 1);
}

void fz_spawner_want_spare(void)
{
	if (FZ_UNLIKELY(!fz_carrier_has_spare()))
		ask();
}

void fz_spawner_want_mortal(void)
{
	/* relaxed: ask() publishes it. */
	atomic_store_explicit(&spawner.wanted_mortal, true, memory_order_relaxed);
	ask();
}

static void answer(bool failed)
{
	struct fz_ticket ticket;
	struct waiter *w;

	fz_lock_acquire(&spawner.lock);
	w = spawner.for_spare;
	spawner.for_spare = NULL;
	if (w) {
		w->failed = failed;
		ticket = w->ticket;
	}
	fz_lock_release(&spawner.lock);
	if (w)
		fz_wake(ticket, FZ_WHY_DONE);
}

static void take_turn(struct fz_fiber *self)
{
	struct waiter w = { .next = NULL };
	bool waits;

	fz_lock_acquire(&spawner.lock);
	waits = spawner.taken;
	if (waits) {
		fz_waits_for(self, FZ_FOR_RUNTIME, NULL);
		w.ticket = fz_wait_arm(self, FZ_WAIT_UNINTERRUPTIBLE);
		if (spawner.last)
			spawner.last->next = &w;
		else
			spawner.first = &w;
		spawner.last = &w;
	}
	spawner.taken = true;
	fz_lock_release(&spawner.lock);
	/* The thread that wakes this one passes the turn on: `taken` stays true. */
	if (waits)
		fz_park(self, FZ_FOREVER);
}

static void await_spare(struct fz_fiber *self)
{
	struct waiter w = { .failed = false };

	while (!w.failed && !fz_carrier_has_spare()) {
		fz_waits_for(self, FZ_FOR_RUNTIME, NULL);
		fz_lock_acquire(&spawner.lock);
		w.ticket = fz_wait_arm(self, FZ_WAIT_UNINTERRUPTIBLE);
		spawner.for_spare = &w;
		fz_lock_release(&spawner.lock);
		/* Ask even if there is a spare by now: only the spawner's answer ends the wait. */
		ask();
		fz_park(self, FZ_FOREVER);
	}
}

void fz_spawner_turn_begin(struct fz_fiber *self)
{
	if (turns) {
		turns++;
		return;
	}
	if (self->kind != FZ_KIND_FIBER || self->call.blocks || fz_host.has_own_allocator ||
	    (fz_host.needs_no_turn && fz_host.needs_no_turn()))
		return;
	fz_enter_runtime(self);
	take_turn(self);
	await_spare(self);
	turns = 1;
	fz_signal_bar(self);
	fz_leave_runtime(self);
}

void fz_spawner_turn_end(struct fz_fiber *self)
{
	struct fz_ticket ticket = { NULL, 0 };
	uint32_t nested;

	if (!turns || --turns)
		return;
	/* In fork, the caller may have no processor and must stay on its kernel thread, so do not enter the runtime. */
	nested = fz_bar_handlers();
	fz_lock_acquire(&spawner.lock);
	if (spawner.first) {
		ticket = spawner.first->ticket;
		spawner.first = spawner.first->next;
		if (!spawner.first)
			spawner.last = NULL;
	} else {
		spawner.taken = false;
	}
	fz_lock_release(&spawner.lock);
	if (ticket.fiber)
		fz_wake(ticket, FZ_WHY_DONE);
	fz_allow_handlers(nested);
	fz_signal_allow(self);
}

void fz_spawner_run(void)
{
	const struct __kernel_timespec late = fz_timespec(300 * FZ_MSEC);
	bool mortal;
	int err;

	for (;;) {
		/* acquire: pairs with ask(). */
		while (!atomic_exchange_explicit(&spawner.wanted, 0, memory_order_acquire))
			fz_sys_futex_wait(&spawner.wanted, 0, NULL);
		if (FZ_FAULT(late_spare))
			fz_syscall2(__NR_nanosleep, (long)&late, 0);
		/* After a failure the monitor asks again at its next tick. */
		mortal = atomic_exchange_explicit(&spawner.wanted_mortal, false, memory_order_relaxed);
		err = fz_carrier_keep_spare(mortal);
		answer(err != 0);
		if (!err)
			fz_monitor_poke();
	}
	__builtin_unreachable();
}

void fz_spawner_after_fork(void)
{
	fz_self()->sig.barred -= turns != 0;
	turns = 0;
	__builtin_memset(&spawner, 0, sizeof(spawner));
	fz_lock_init(&spawner.lock, FZ_RANK_CARRIERS);
}
