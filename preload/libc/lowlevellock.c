/* SPDX-License-Identifier: MIT */
#include "preload/libc/lowlevellock.h"

#include "preload/gate.h"
#include "preload/libc/redirect.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

struct fz_lll fz_lll_real;

/* How many threads wait in the kernel, for any lock. A hint: if it is not 0, each unlock also wakes there. */
static _Atomic uint32_t in_kernel;

static bool in_runtime(const struct fz_fiber *self)
{
	/* relaxed: only this thread and its handlers write it. */
	return atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
}

/*
 * May the caller park, that is, continue on another kernel thread, or wait for a processor
 * while it holds other locks? These threads may not:
 *
 *	a thread inside the runtime: for example a carrier that makes a fiber's call
 *	in its own name (preload/thread/setid.c)
 *	a thread in fork: it holds malloc's locks, which the runtime's threads may need
 *	a thread for which libc has changed the kernel thread's signal mask without the
 *	library's knowledge (posix_spawn, pthread_kill): libc would restore the mask on
 *	another kernel thread
 */
static bool may_park(const struct fz_fiber *self)
{
	return !in_runtime(self) && (self->kind != FZ_KIND_FIBER ||
				     (!self->call.blocks && !self->call.in_fork &&
				      fz_signal_mask_is_known(self)));
}

/* malloc holds its locks for less time than a switch of fibers takes. */
static bool take_spinning(_Atomic uint32_t *lock)
{
	for (int spin = 0; spin < 100; spin++) {
		/* relaxed: only a hint; acquire: pairs with the release of libc's unlock. */
		if (atomic_load_explicit(lock, memory_order_relaxed) == 0 &&
		    atomic_exchange_explicit(lock, 2, memory_order_acquire) == 0)
			return true;
		fz_cpu_relax();
	}
	return false;
}

void fz_lll_wait_private(int *word)
{
	_Atomic uint32_t *lock = (_Atomic uint32_t *)word;

	if (take_spinning(lock))
		return;
	if (fz_redirect_in_child() || !may_park(fz_self())) {
		/*
		 * release: stored before libc makes the word 2. An unlocker that sees the 2
		 * also sees this count; pairs with the acquire in fz_lll_wake_private().
		 */
		atomic_fetch_add_explicit(&in_kernel, 1, memory_order_release);
		fz_lll_real.wait_private(word);
		atomic_fetch_sub_explicit(&in_kernel, 1, memory_order_relaxed);
		return;
	}
	fz_lot_lock(lock, FZ_FOR_LIBC_LOCK, FZ_FOREVER);
}

/*
 * The lock is free already, and its memory may be gone, so only its address is used. An unlock
 * wakes one waiter in the parking lot and one in the kernel, if there are any; otherwise waiters in
 * the kernel would starve until the parking lot is empty.
 */
void fz_lll_wake_private(int *word)
{
	struct fz_fiber *self = fz_self();
	bool woken = false;

	if (!fz_redirect_in_child())
		woken = may_park(self) || in_runtime(self) ? fz_lot_wake(word, 1) :
							     fz_lot_wake_staying(word, 1);

	/* acquire: pairs with the release in fz_lll_wait_private(). */
	if (!woken || atomic_load_explicit(&in_kernel, memory_order_acquire))
		fz_lll_real.wake_private(word);
}
