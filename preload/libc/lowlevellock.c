/* SPDX-License-Identifier: MIT */
#include "preload/libc/lowlevellock.h"

#include "preload/gate.h"
#include "preload/libc/redirect.h"
#include "runtime/sync/lot.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"

struct fz_lll fz_lll_real;

/* How many wait in the kernel; only a reason to look there. */
static _Atomic uint32_t in_kernel;

static bool in_runtime(const struct fz_fiber *self)
{
	/* relaxed: only this thread and its handlers write it. */
	return atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
}

/*
 * May the caller go on on another kernel thread, or wait for a processor with
 * whatever locks it holds?  Not
 *
 *	a thread inside the runtime; a carrier is, in the call of a fiber that it
 *	makes in its own name (preload/thread/setid.c)
 *	in fork, which holds those of malloc, which our own threads may need
 *	while libc has changed the mask of this kernel thread behind our back
 *	(posix_spawn, pthread_kill): it would restore that of another
 */
static bool may_park(const struct fz_fiber *self)
{
	return !in_runtime(self) && (self->kind != FZ_KIND_FIBER ||
				     (!self->call.blocks && !self->call.in_fork &&
				      fz_signal_mask_is_known(self)));
}

/* malloc's are held for less than a switch takes. */
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
		 * release, before the word becomes 2: who unlocks and sees that sees
		 * this.
		 */
		atomic_fetch_add_explicit(&in_kernel, 1, memory_order_release);
		fz_lll_real.wait_private(word);
		atomic_fetch_sub_explicit(&in_kernel, 1, memory_order_relaxed);
		return;
	}
	fz_lot_lock(lock, FZ_FOREVER);
}

/*
 * The lock is free already, and may be gone: only its address is used.  One of each
 * kind, or those in the kernel would wait until nobody is in the parking lot.
 */
void fz_lll_wake_private(int *word)
{
	struct fz_fiber *self = fz_self();
	bool woken = false;

	if (!fz_redirect_in_child())
		woken = may_park(self) || in_runtime(self) ? fz_lot_wake(word, 1) :
							     fz_lot_wake_staying(word, 1);

	/* acquire: as above. */
	if (!woken || atomic_load_explicit(&in_kernel, memory_order_acquire))
		fz_lll_real.wake_private(word);
}
