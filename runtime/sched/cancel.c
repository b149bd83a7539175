/* SPDX-License-Identifier: MIT */
#include "runtime/sched/cancel.h"

#include "runtime/base/host.h"

/* glibc's bits of cancelhandling. */
enum {
	DISABLED = 1, ASYNCHRONOUS = 2, CANCELING = 4, CANCELED = 8, TERMINATED = 32,
	EXITING = FZ_CANCEL_EXITING,
};

static int cancel_bits(const struct fz_fiber *f)
{
	/* seq_cst: pairs with pthread_cancel's publication of the request. */
	return atomic_load_explicit(fz_tcb_cancelhandling(fz_tcb_of(f)), memory_order_seq_cst);
}

bool fz_cancel_requested(const struct fz_fiber *self)
{
	/* seq_cst: as in cancel_bits(). */
	return FZ_UNLIKELY(atomic_load_explicit(&self->cancel.sent, memory_order_seq_cst)) &&
	       (cancel_bits(self) & (DISABLED | CANCELED | EXITING)) == CANCELED;
}

bool fz_cancel_type_is_asynchronous(const struct fz_fiber *self)
{
	return FZ_UNLIKELY(cancel_bits(self) & ASYNCHRONOUS);
}

bool fz_cancel_is_asynchronous(const struct fz_fiber *f)
{
	return atomic_load_explicit(&f->cancel.sent, memory_order_seq_cst) &&
	       !atomic_load_explicit(&f->cancel.deferred, memory_order_seq_cst) &&
	       !atomic_load_explicit(&f->cancel.in_call, memory_order_seq_cst) &&
	       (cancel_bits(f) & (DISABLED | CANCELED | EXITING | ASYNCHRONOUS)) ==
	       (CANCELED | ASYNCHRONOUS);
}

bool fz_cancel_interrupts(const struct fz_fiber *f)
{
	/* seq_cst: as in fz_cancel_is_asynchronous(). */
	return fz_cancel_is_asynchronous(f) ||
	       (atomic_load_explicit(&f->cancel.in_call, memory_order_seq_cst) &&
		atomic_load_explicit(&f->cancel.sent, memory_order_seq_cst) &&
		(cancel_bits(f) & (DISABLED | CANCELED | EXITING)) == CANCELED);
}

bool fz_cancel_is_unseen(const struct fz_fiber *f)
{
	/* seq_cst: as in fz_cancel_is_asynchronous(). */
	return atomic_load_explicit(&f->cancel.sent, memory_order_seq_cst) &&
	       !atomic_load_explicit(&f->cancel.seen, memory_order_relaxed) &&
	       !atomic_load_explicit(&f->cancel.deferred, memory_order_seq_cst) &&
	       (cancel_bits(f) & (DISABLED | CANCELED | EXITING | ASYNCHRONOUS)) == CANCELED;
}

void fz_cancel_disable(struct fz_fiber *self)
{
	/* relaxed: only the thread itself acts on DISABLED. */
	atomic_fetch_or_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)), DISABLED,
				 memory_order_relaxed);
}

bool fz_cancel_is_leaving(const struct fz_fiber *f)
{
	return cancel_bits(f) & (CANCELING | CANCELED | EXITING | TERMINATED);
}

void fz_cancel_defer(struct fz_fiber *self)
{
	/* relaxed: only the thread itself, and a thread that interrupts it, act on it. */
	atomic_store_explicit(&self->cancel.deferred, true, memory_order_relaxed);
}

void fz_cancel_undefer(struct fz_fiber *self)
{
	/* seq_cst: pairs with fz_cancel_is_asynchronous(), called after a request was published. */
	atomic_store_explicit(&self->cancel.deferred, false, memory_order_seq_cst);
	if (FZ_UNLIKELY(fz_cancel_is_asynchronous(self)))
		fz_host.test_cancel();
}

bool fz_cancel_begin_call(struct fz_fiber *self)
{
	/*
	 * seq_cst: pairs with cancel_bits(), called after a request was published.  The
	 * asynchronous type is for libc: if the thread is wired in mid-call, libc signals it only
	 * with this type.
	 */
	const bool changed = !(atomic_fetch_or_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)),
							ASYNCHRONOUS, memory_order_seq_cst) &
			       ASYNCHRONOUS);

	if (changed)
		atomic_store_explicit(&self->cancel.in_call, true, memory_order_seq_cst);
	return changed;
}

void fz_cancel_end_call(struct fz_fiber *self, bool changed)
{
	if (!changed)
		return;
	/* relaxed: only the thread itself, and a handler on it, act on these two. */
	atomic_fetch_and_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)), ~ASYNCHRONOUS,
				  memory_order_relaxed);
	atomic_store_explicit(&self->cancel.in_call, false, memory_order_relaxed);
}
