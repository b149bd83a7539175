/* SPDX-License-Identifier: MIT */
#include "runtime/signal/monitor_mask.h"

#include "runtime/base/lock.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

static struct {
	struct fz_lock lock;		/* serializes the threads that wait */
	/* The monitor's mask; only the monitor writes it.  fz_host.thread_create() starts it with all signals blocked. */
	uint64_t mask;
	_Atomic uint32_t wanted, done;	/* counts of changes */
} masking = { .lock = FZ_LOCK(FZ_RANK_MASK), .mask = FZ_SIGNALS_ALL };

void fz_monitor_follow_mask(void)
{
	uint32_t wanted;

	/*
	 * A handler may have forked just before, in a function that then comes here: the child has no monitor.
	 * acquire: pairs with fz_sched_start().
	 */
	if (FZ_UNLIKELY(!atomic_load_explicit(&fz_sched.started, memory_order_acquire)))
		return;
	fz_lock_acquire(&masking.lock);
	/* release: publishes what the caller has changed; pairs with fz_monitor_apply_mask(). */
	wanted = atomic_fetch_add_explicit(&masking.wanted, 1, memory_order_release) + 1;
	fz_monitor_poke();
	for (;;) {
		/* acquire: pairs with fz_monitor_mask_applies(). */
		uint32_t done = atomic_load_explicit(&masking.done, memory_order_acquire);

		if (done == wanted)
			break;
		fz_sys_futex_wait(&masking.done, done, NULL);
	}
	fz_lock_release(&masking.lock);
}

void fz_monitor_update_mask(void)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_monitor_follow_mask();
	fz_leave_runtime(self);
}

void fz_monitor_settle(void)
{
	if (FZ_UNLIKELY(!fz_monitor_is_asleep()))
		fz_monitor_update_mask();
}

uint32_t fz_monitor_apply_mask(void)
{
	/* acquire: pairs with fz_monitor_follow_mask(). */
	uint32_t wanted = atomic_load_explicit(&masking.wanted, memory_order_acquire);
	bool asked = wanted != atomic_load_explicit(&masking.done, memory_order_relaxed);
	/* SIGCANCEL of libc's stays blocked, so that fz_signal_learn_cancel() finds it pending. */
	uint64_t mask = fz_signal_left_to_kernel() | fz_signals_hidden() | fz_signal_bit(FZ_SIGNAL_CANCEL);

	/* On return from the system call the kernel has delivered what the new mask lets in. */
	if (mask != masking.mask || asked) {
		masking.mask = mask;
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	}
	/* A signal stays substituted while all threads block it: restore those that a thread accepts now. */
	fz_signal_restore(FZ_SIGNALS_ALL);
	return wanted;
}

void fz_monitor_mask_applies(uint32_t wanted)
{
	if (wanted == atomic_load_explicit(&masking.done, memory_order_relaxed))
		return;
	/* release: pairs with fz_monitor_follow_mask(). */
	atomic_store_explicit(&masking.done, wanted, memory_order_release);
	fz_sys_futex_wake(&masking.done, 1);
}

void fz_monitor_mask_after_fork(void)
{
	__builtin_memset(&masking, 0, sizeof(masking));
	fz_lock_init(&masking.lock, FZ_RANK_MASK);
	masking.mask = FZ_SIGNALS_ALL;
}
