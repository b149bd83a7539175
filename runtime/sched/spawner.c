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
#include "runtime/sched/sched.h"

static struct {
	_Atomic uint32_t wanted;	/* futex; 1: asked for, and the spawner has not seen it */
	struct fz_lock lock;
	struct waiter *first;		/* guarded by lock */
} spawner = { .lock = FZ_LOCK(FZ_RANK_CARRIERS) };

/* On the stack of a fiber in fz_spawner_await_spare(), until the spawner takes it off the list. */
struct waiter {
	struct fz_ticket ticket;
	struct waiter *next;
	bool failed;			/* the spawner could not make a carrier */
};

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

static void wake_waiters(bool failed)
{
	struct waiter *w, *next;

	fz_lock_acquire(&spawner.lock);
	w = spawner.first;
	spawner.first = NULL;
	fz_lock_release(&spawner.lock);
	for (; w; w = next) {
		next = w->next;
		w->failed = failed;
		fz_wake(w->ticket, FZ_WHY_DONE);
	}
}

void fz_spawner_await_spare(struct fz_fiber *self)
{
	struct waiter w;

	if (self->kind != FZ_KIND_FIBER || FZ_LIKELY(fz_carrier_has_spare()))
		return;
	fz_enter_runtime(self);
	do {
		w.failed = false;
		fz_waits_for(self, FZ_FOR_RUNTIME, NULL);
		fz_lock_acquire(&spawner.lock);
		w.ticket = fz_wait_arm(self, FZ_WAIT_UNINTERRUPTIBLE);
		w.next = spawner.first;
		spawner.first = &w;
		fz_lock_release(&spawner.lock);
		/* Also if there is a spare by now: the spawner answers. */
		ask();
		fz_park(self, FZ_FOREVER);
	} while (!w.failed && !fz_carrier_has_spare());
	fz_leave_runtime(self);
}

void fz_spawner_run(void)
{
	const struct __kernel_timespec late = fz_timespec(300 * FZ_MSEC);
	int err;

	for (;;) {
		/* acquire: pairs with fz_spawner_want_spare(). */
		while (!atomic_exchange_explicit(&spawner.wanted, 0, memory_order_acquire))
			fz_sys_futex_wait(&spawner.wanted, 0, NULL);
		if (FZ_FAULT(late_spare))
			fz_syscall2(__NR_nanosleep, (long)&late, 0);
		/* After a failure the monitor asks again at its next tick. */
		err = fz_carrier_keep_spare();
		wake_waiters(err != 0);
		if (!err)
			fz_monitor_poke();
	}
	__builtin_unreachable();
}

void fz_spawner_after_fork(void)
{
	__builtin_memset(&spawner, 0, sizeof(spawner));
	fz_lock_init(&spawner.lock, FZ_RANK_CARRIERS);
}
