/* SPDX-License-Identifier: MIT */
#include "runtime/sync/futex2.h"

#include <asm/errno.h>

#include "runtime/base/sys.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/futex.h"
#include "runtime/sync/lot.h"

/* Can fibers wait for such a word in the lot?  A NUMA word has waiters of its own in the kernel. */
static bool is_private(unsigned flags)
{
	return flags == (FZ_UAPI_FUTEX2_SIZE_U32 | FZ_UAPI_FUTEX2_PRIVATE);
}

static bool lot_is_used(void)
{
	/* acquire: pairs with fz_sched_start(). */
	return atomic_load_explicit(&fz_sched.started, memory_order_acquire);
}

long fz_futex2_wake(uint32_t *word, unsigned long bits, int n, unsigned flags)
{
	/* The kernel wakes one waiter if it is asked for a negative number. */
	const long most = n < 0 ? 1 : n;
	const long woken = fz_syscall4(FZ_UAPI_NR_FUTEX_WAKE, (long)word, (long)bits, n, flags);

	if (woken < 0 || woken >= most || !is_private(flags) || !lot_is_used())
		return woken;
	return woken + fz_lot_wake_bits((_Atomic uint32_t *)word, (uint32_t)(most - woken), (uint32_t)bits);
}

long fz_futex2_requeue(const struct fz_uapi_futex_waitv *waiters, unsigned flags, int wake, int move)
{
	const long done = fz_syscall4(FZ_UAPI_NR_FUTEX_REQUEUE, (long)waiters, flags, wake, move);
	/* The kernel does not tell how many of them it has woken: it wakes first. */
	const long woken = done < wake ? done : wake;
	struct fz_lot_requeue order;
	uint32_t expected;

	if (done < 0 || done >= (long)wake + move || !is_private(waiters[0].flags) || !lot_is_used())
		return done;
	expected = (uint32_t)waiters[0].val;
	order = (struct fz_lot_requeue){
		.wake = (uint32_t)(wake - woken),
		.move = (uint32_t)(move - (done - woken)),
	};
	/* Nobody waits for a shared word in the lot, so those that would be moved are woken: waiters must expect that. */
	if (!is_private(waiters[1].flags)) {
		order.wake += order.move;
		order.move = 0;
	}
	/* If the word has changed since, the kernel's part happened before the change. */
	fz_lot_requeue((_Atomic uint32_t *)(uintptr_t)waiters[0].uaddr,
		       (_Atomic uint32_t *)(uintptr_t)waiters[1].uaddr, &expected, &order);
	return done + order.woken + order.moved;
}

long fz_futex2_wait(struct fz_fiber *self, uint32_t *word, unsigned long expected, unsigned long bits,
		    unsigned flags, const struct __kernel_timespec *when, int clock)
{
	/* A kernel that knows the call, and a filter that allows it, refuse it with EINVAL if no bit is set. */
	const long ret = fz_syscall6(FZ_UAPI_NR_FUTEX_WAIT, (long)word, (long)expected, 0, flags, (long)when,
				     clock);

	if (ret != -EINVAL || !lot_is_used())
		return ret;
	if ((expected | bits) >> 32 || (when && clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return ret;
	return fz_futex_wait(self, word, (uint32_t)expected, (uint32_t)bits,
			     !(flags & FZ_UAPI_FUTEX2_PRIVATE), when, when && clock == CLOCK_REALTIME);
}
