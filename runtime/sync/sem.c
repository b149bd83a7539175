/* SPDX-License-Identifier: MIT */
#include "runtime/sync/sem.h"

#include <asm/errno.h>

#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

#define ONE_WAITER ((uint64_t)1 << 32)
#define VALUE_MAX 0x7fffffffu

/* If the value is not 0: subtract 1 from it, and `waiters` from `both`, in one step.  Returns false if it is 0. */
static bool take(struct fz_sem *s, uint64_t waiters)
{
	uint64_t both = atomic_load_explicit(&s->both, memory_order_relaxed);

	while ((uint32_t)both)
		/* acquire: pairs with the release in fz_sem_post(). */
		if (atomic_compare_exchange_weak_explicit(&s->both, &both, both - 1 - waiters,
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

int fz_sem_trywait(struct fz_sem *s)
{
	return take(s, 0) ? 0 : -EAGAIN;
}

int fz_sem_wait(struct fz_sem *s, fz_nsec deadline)
{
	unsigned flags = FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL;
	struct fz_fiber *self = fz_self();
	fz_nsec since = 0;
	int ret;

	if (take(s, 0))
		return 0;
	/* seq_cst: pairs with fz_sem_post(), which sees this waiter, or the waiter sees the new value. */
	fz_cancel_defer(self);
	atomic_fetch_add_explicit(&s->both, ONE_WAITER, memory_order_seq_cst);
	for (;;) {
		fz_signal_mark(self);
		ret = fz_lot_wait(&s->value, 0, deadline, flags | FZ_LOT_FOR(FZ_FOR_SEM));
		if (take(s, ONE_WAITER)) {
			ret = 0;
			break;
		}
		if (ret == -ETIMEDOUT || ret == -ECANCELED ||
		    (ret == -EINTR && (deadline != FZ_FOREVER || !fz_signal_restarts(self)))) {
			/* relaxed: at worst a post looks for this waiter in vain. */
			atomic_fetch_sub_explicit(&s->both, ONE_WAITER, memory_order_relaxed);
			break;
		}
		flags |= fz_lot_patience(&since);
	}
	fz_cancel_undefer(self);
	return ret;
}

int fz_sem_post(struct fz_sem *s)
{
	uint64_t both = atomic_load_explicit(&s->both, memory_order_relaxed);

	do {
		if ((uint32_t)both == VALUE_MAX)
			return -EOVERFLOW;
		/* seq_cst: release for the acquire in take(); and see fz_sem_wait(). */
	} while (!atomic_compare_exchange_weak_explicit(&s->both, &both, both + 1,
							memory_order_seq_cst,
							memory_order_relaxed));
	/* From here on s may be gone, if no thread waited. */
	if (both >> 32)
		fz_lot_wake(&s->value, 1);
	return 0;
}
