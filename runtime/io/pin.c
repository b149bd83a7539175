/* SPDX-License-Identifier: MIT */
#include "runtime/io/pin.h"

#include <limits.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/base/lock.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/op.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

enum { BUCKETS = 256 };

struct bucket {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
	/* Guarded by the lock; without it, a hint. */
	struct fz_pin *_Atomic first;
};

/* Whole pages, for fz_pin_after_fork(). */
static _Alignas(4096) struct bucket buckets[BUCKETS] = {
	[0 ... BUCKETS - 1].lock = FZ_LOCK(FZ_RANK_BUCKET)
};
_Static_assert(sizeof(buckets) % 4096 == 0, "whole pages");

static struct bucket *bucket_of(int fd)
{
	return &buckets[(unsigned)fd % BUCKETS];
}

static struct fz_pin *first_in(const struct bucket *b)
{
	/* relaxed: the caller holds the lock, or takes it as a hint. */
	return atomic_load_explicit(&b->first, memory_order_relaxed);
}

/* With the lock held. */
static bool is_list(const struct bucket *b)
{
	const struct fz_pin *before = NULL;

	for (const struct fz_pin *pin = first_in(b); pin; before = pin, pin = pin->next)
		if (pin->prev != before || !pin->linked || bucket_of(pin->number) != b)
			return false;
	return true;
}

/* The caller holds the lock of the pin's bucket, also in unlink_locked(). */
static void link_locked(struct fz_pin *pin)
{
	struct bucket *b = bucket_of(pin->number);

	pin->prev = NULL;
	pin->next = first_in(b);
	if (pin->next)
		pin->next->prev = pin;
	atomic_store_explicit(&b->first, pin, memory_order_relaxed);
	pin->linked = true;
	FZ_ASSERT_SLOW(is_list(b));
}

static void unlink_locked(struct fz_pin *pin)
{
	if (pin->next)
		pin->next->prev = pin->prev;
	if (pin->prev)
		pin->prev->next = pin->next;
	else
		atomic_store_explicit(&bucket_of(pin->number)->first, pin->next,
				      memory_order_relaxed);
	pin->linked = false;
	FZ_ASSERT_SLOW(is_list(bucket_of(pin->number)));
}

void fz_pin_begin(struct fz_pin *pin, struct fz_ticket ticket, bool ask_again)
{
	struct bucket *b = bucket_of(pin->number);

	/* A call that already uses a copy needs no pin: the program cannot close the copy. */
	if (pin->number < 0 || pin->copy != -1)
		return;
	pin->ticket = ticket;
	pin->ask_again = ask_again;
	pin->waiting = true;
	fz_lock_acquire(&b->lock);
	link_locked(pin);
	fz_lock_release(&b->lock);
}

void fz_pin_end(struct fz_pin *pin, enum fz_why why)
{
	struct bucket *b = bucket_of(pin->number);

	if (pin->waiting) {
		fz_lock_acquire(&b->lock);
		if (pin->linked)
			unlink_locked(pin);
		fz_lock_release(&b->lock);
		pin->waiting = false;
	}
	/* A handler may leave the call by siglongjmp.  If none is due, the call goes on with the copy. */
	if (why != FZ_WHY_CANCEL && !(why == FZ_WHY_SIGNAL && fz_signal_is_due(fz_self())))
		return;
	if (FZ_UNLIKELY(pin->copy >= 0)) {
		struct fz_fiber *self = fz_self();

		fz_block_in_runtime(self);
		fz_pin_release(pin);
		fz_block_in_runtime_end(self);
	}
	pin->copy = -1;
}

void fz_pin_close_copy(struct fz_fiber *self, int copy)
{
	if (FZ_LIKELY(copy < 0))
		return;
	fz_block_in_runtime(self);
	fz_kept_fd_drop(copy);
	fz_block_in_runtime_end(self);
}

void fz_pin_hold(struct fz_fiber *self, struct fz_pin *pin)
{
	int copy;

	if (pin->copy != -1)
		return;
	fz_enter_runtime(self);
	copy = fz_kept_fd_make(pin->number);
	if (copy >= 0)
		fz_pin_adopt(pin, copy);
	fz_leave_runtime(self);
}

void fz_pin_release(struct fz_pin *pin)
{
	uint32_t nested;

	if (FZ_LIKELY(pin->copy == -1))
		return;
	if (FZ_UNLIKELY(pin->copy < 0)) {
		pin->copy = -1;
		return;
	}
	nested = fz_bar_handlers();
	fz_op_unwatch(pin->copy);
	fz_fdtab_set(pin->copy, FZ_FD_UNKNOWN);
	fz_kept_fd_drop(pin->copy);
	pin->copy = -1;
	fz_allow_handlers(nested);
}

void fz_pin_closing(int fd)
{
	struct bucket *b = bucket_of(fd);
	struct fz_pin *next;

	if (!fz_pin_is_pinned(fd))
		return;
	fz_lock_acquire(&b->lock);
	for (struct fz_pin *pin = first_in(b); pin; pin = next) {
		next = pin->next;
		if (pin->number != fd)
			continue;
		pin->copy = fz_kept_fd_make(fd);
		if (pin->copy < 0)
			pin->copy = FZ_PIN_CLOSED;
		unlink_locked(pin);
		if (pin->ask_again)
			fz_wake(pin->ticket, FZ_WHY_DONE);
	}
	fz_lock_release(&b->lock);
}

bool fz_pin_is_pinned(int fd)
{
	return first_in(bucket_of(fd));
}

unsigned fz_pin_next(unsigned first)
{
	unsigned best = UINT_MAX;

	for (struct bucket *b = buckets; b < buckets + BUCKETS; b++) {
		if (!first_in(b))
			continue;
		fz_lock_acquire(&b->lock);
		for (const struct fz_pin *pin = first_in(b); pin; pin = pin->next)
			if ((unsigned)pin->number >= first && (unsigned)pin->number < best)
				best = (unsigned)pin->number;
		fz_lock_release(&b->lock);
	}
	return best;
}

void fz_pin_after_fork(void)
{
	fz_sys_forget_pages(buckets, sizeof(buckets));
}
