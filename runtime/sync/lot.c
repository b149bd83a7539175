/* SPDX-License-Identifier: MIT */
#include "runtime/sync/lot.h"

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/bucket.h"
#include "runtime/sync/priority.h"

enum {
	AT_A_TIME = 4,			/* fibers woken after the lock was held once */
	PATIENCE = 100000,		/* ns */
};

/* Whole pages, for fz_lot_after_fork(). */
_Alignas(4096) struct bucket fz_buckets[BUCKETS] = {
	[0 ... BUCKETS - 1].lock = FZ_LOCK(FZ_RANK_BUCKET)
};

/*
 * Leave the queue after a timeout, signal or cancellation.  Returns false if a waker was first:
 * the wait counts as woken.
 */
static bool leave_queue(struct waiter *w)
{
	for (;;) {
		/* relaxed: checked again under the bucket's lock. */
		const void *word = atomic_load_explicit(&w->word, memory_order_relaxed);
		struct bucket *b = bucket_of(word);
		struct waiters *list;
		bool same;

		fz_lock_acquire(&b->lock);
		same = atomic_load_explicit(&w->word, memory_order_relaxed) == word;
		list = w->list;
		if (same && list)
			remove(w);
		fz_lock_release(&b->lock);
		if (same)
			return list == &b->waiters;
	}
}

static int reason(enum fz_why why)
{
	switch (why) {
	case FZ_WHY_TIMEOUT: return -ETIMEDOUT;
	case FZ_WHY_SIGNAL: return -EINTR;
	case FZ_WHY_CANCEL: return -ECANCELED;
	default: return 0;
	}
}

/*
 * Returns the calling thread.  In a fork's child, first forget the parent's threads: no waiter is left
 * there, and callers have not checked that.
 */
static inline struct fz_fiber *caller(void)
{
	struct fz_fiber *self = fz_self();

	/* Before the constructor nobody has waited. */
	if (FZ_UNLIKELY(self->call.in_fork) && fz_host.fork_notice)
		fz_host.fork_notice();
	return self;
}

/*
 * Is self unable to enter the runtime?  The library's own threads are in the runtime already when
 * they wait inside libc or an allocator.  A fiber is never in the runtime here; a fiber that must
 * block its carrier (call.blocks) must not enter the runtime.
 */
static inline bool stays_outside(const struct fz_fiber *self)
{
	bool nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	FZ_ASSERT(!nested || self->kind != FZ_KIND_FIBER);
	return nested || self->call.blocks;
}

/* Inlined, and so is must_wait: nearly each wait takes this way. */
__attribute__((always_inline)) static inline int
wait_common(const void *key, bool (*must_wait)(const void *, uint32_t), uint32_t arg,
	    uint32_t bits, fz_nsec deadline, unsigned flags)
{
	struct fz_fiber *self = caller();
	struct bucket *b = bucket_of(key);
	bool nested = stays_outside(self);
	struct waiter w = { .word = key, .bits = bits, .starves = flags & FZ_LOT_STARVES,
			    .priority = nested ? BEFORE_ALL : fz_priority_own() };
	enum fz_why why;
	int ret = -EAGAIN;

	fz_waits_for(self, flags >> 16 ? flags >> 16 : FZ_FOR_FUTEX, key);
	flags = self->call.blocks ? FZ_WAIT_BLOCKS : flags & (FZ_LOT_STARVES - 1);
	/* While handlers are barred, a signal cannot run a handler, so it must not end the wait. */
	if (FZ_UNLIKELY(self->sig.barred))
		flags = (flags & ~FZ_WAIT_SIGNAL) | FZ_WAIT_UNINTERRUPTIBLE;
	if (!nested)
		fz_enter_runtime(self);
	fz_lock_acquire(&b->lock);
	/* A thread that changes the state and then wakes: it finds w in the queue, or must_wait() sees the change. */
	if (!must_wait(key, arg)) {
		fz_lock_release(&b->lock);
		goto out;
	}
	if (deadline != FZ_FOREVER && deadline <= fz_now()) {
		fz_lock_release(&b->lock);
		ret = -ETIMEDOUT;
		goto out;
	}
	w.ticket = fz_wait_arm(self, flags);
	if (w.starves)
		prepend(&b->waiters, &w);
	else
		append(&b->waiters, &w);
	fz_lock_release(&b->lock);

	why = fz_park(self, deadline);

	ret = why != FZ_WHY_DONE && leave_queue(&w) ? reason(why) : 0;
out:
	if (!nested)
		fz_leave_runtime(self);
	return ret;
}

static bool word_is(const void *word, uint32_t expected)
{
	/* acquire: pairs with the store of the thread that changed the word, if we return for that. */
	return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_acquire) ==
	       expected;
}

int fz_lot_wait_bits(const _Atomic uint32_t *word, uint32_t expected, uint32_t bits,
		     fz_nsec deadline, unsigned flags)
{
	return wait_common(word, word_is, expected, bits, deadline, flags);
}

int fz_lot_wait_while(const void *key, bool (*must_wait)(const void *, uint32_t),
		      uint32_t arg, fz_nsec deadline, unsigned flags)
{
	return wait_common(key, must_wait, arg, UINT32_MAX, deadline, flags);
}

unsigned fz_lot_patience(fz_nsec *since)
{
	if (*since)
		return fz_now() - *since > PATIENCE ? FZ_LOT_STARVES : 0;
	*since = fz_now();
	return 0;
}

int fz_lot_lock(_Atomic uint32_t *lock, enum fz_waits_for what, fz_nsec deadline)
{
	unsigned flags = FZ_WAIT_SIGNAL | FZ_LOT_FOR(what);
	fz_nsec since = fz_now();

	/* acquire: pairs with the release store of 0 by the last holder. */
	while (atomic_exchange_explicit(lock, 2, memory_order_acquire) != 0) {
		if (fz_lot_wait(lock, 2, deadline, flags) == -ETIMEDOUT)
			return -ETIMEDOUT;
		flags |= fz_lot_patience(&since);
	}
	return 0;
}

struct batch {
	struct fz_ticket fibers[AT_A_TIME];
	uint32_t taken, count;
};

/* Take w out of its list, with the lock held.  Its fiber is woken by wake_batch(). */
__attribute__((always_inline)) static inline void take_out(struct waiter *w, struct batch *batch)
{
	struct fz_ticket ticket = w->ticket;

	/* After this the waiter's thread may return at any time: w is gone then. */
	remove(w);
	batch->taken++;
	if (FZ_LIKELY(ticket.fiber->kind == FZ_KIND_FIBER))
		batch->fibers[batch->count++] = ticket;
	else
		/* A native thread's record ends with the thread: wake it under the lock. */
		fz_wake(ticket, FZ_WHY_DONE);
}

/* Without the lock.  A waiter that has timed out meanwhile counts, too: leave_queue() tells it that it was woken. */
static inline void wake_batch(const struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		fz_wake(batch->fibers[i], FZ_WHY_DONE);
}

static void wake_rest(struct bucket *b, struct waiters *rest)
{
	bool more;

	do {
		struct batch batch;

		batch.taken = batch.count = 0;
		fz_lock_acquire(&b->lock);
		while (rest->head && batch.taken < AT_A_TIME)
			take_out(rest->head, &batch);
		more = rest->head;
		fz_lock_release(&b->lock);
		wake_batch(&batch);
	} while (more);
}

/*
 * In the runtime.  Increments *advance, if given, under the lock.  Sets *ret_starves if one of the
 * woken waiters starves.  Inlined: each wake-up takes this way.
 */
__attribute__((always_inline)) static inline uint32_t
wake_in_runtime(const void *word, _Atomic uint32_t *advance, uint32_t n, uint32_t bits,
		bool *ret_starves)
{
	struct bucket *b = bucket_of(word);
	struct batch batch;
	struct waiters rest = { NULL, NULL };
	uint32_t woken = 0;

	batch.taken = batch.count = 0;
	fz_lock_acquire(&b->lock);
	if (advance)
		/* relaxed: the lock orders. */
		atomic_store_explicit(advance, atomic_load_explicit(advance, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	/* All are taken in one step: who waits from now on, woken ones among them, is not of this wake-up. */
	for (struct waiter *w = b->waiters.head, *next; w && woken < n; w = next) {
		next = w->next;
		if (!waits_for(w, word, bits))
			continue;
		woken++;
		*ret_starves |= w->starves;
		if (FZ_LIKELY(batch.taken < AT_A_TIME)) {
			take_out(w, &batch);
		} else {
			remove(w);
			insert(&rest, w, rest.tail);
		}
	}
	fz_lock_release(&b->lock);
	wake_batch(&batch);
	if (FZ_UNLIKELY(woken > batch.taken))
		wake_rest(b, &rest);
	return woken;
}

uint32_t fz_lot_wake_advancing(const void *word, _Atomic uint32_t *advance, uint32_t n,
			       uint32_t bits)
{
	struct fz_fiber *self = caller();
	/* relaxed: as in stays_outside(); but every thread in the runtime may wake, fibers too. */
	const bool nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed) ||
			    self->call.blocks;
	bool starves = false;
	uint32_t woken;

	if (!nested)
		fz_enter_runtime(self);
	woken = wake_in_runtime(word, advance, n, bits, &starves);
	if (nested)
		return woken;
	if (FZ_UNLIKELY(starves) && self->kind == FZ_KIND_FIBER)
		fz_sched_yield(self);
	fz_leave_runtime(self);
	return woken;
}

uint32_t fz_lot_wake_staying(const void *word, uint32_t n)
{
	struct fz_fiber *self = caller();
	bool starves = false;
	uint32_t woken;

	FZ_ASSERT(atomic_load_explicit(&self->in_runtime, memory_order_relaxed) == 0);
	/* relaxed, with signal fences: only handlers on this kernel thread read it. */
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	woken = wake_in_runtime(word, NULL, n, UINT32_MAX, &starves);
	atomic_signal_fence(memory_order_seq_cst);
	/* If a signal has arrived meanwhile, the monitor interrupts this thread again. */
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
	return woken;
}

struct fz_fiber *fz_lot_take(const void *word)
{
	struct bucket *b = bucket_of(word);
	struct fz_ticket ticket = { NULL, 0 };

	fz_lock_acquire(&b->lock);
	for (struct waiter *w = b->waiters.head; w; w = w->next) {
		if (!waits_for(w, word, UINT32_MAX))
			continue;
		if (w->ticket.fiber->kind == FZ_KIND_FIBER &&
		    fz_wait_is_parked(w->ticket.fiber)) {
			ticket = w->ticket;
			/* After this the waiter's thread may return at any time: w is gone then. */
			remove(w);
		}
		break;
	}
	fz_lock_release(&b->lock);
	return ticket.fiber ? fz_wake_to_run(ticket, FZ_WHY_DONE) : NULL;
}

/* ---- requeueing --------------------------------------------------------- */

static void lock_two(struct bucket *a, struct bucket *b)
{
	fz_lock_acquire(a < b ? &a->lock : &b->lock);
	if (a != b)
		fz_lock_acquire(a < b ? &b->lock : &a->lock);
}

static void unlock_two(struct bucket *a, struct bucket *b)
{
	if (a != b)
		fz_lock_release(&b->lock);
	fz_lock_release(&a->lock);
}

static void requeue_locked(struct bucket *a, struct bucket *b, const void *from,
			   const void *to, struct fz_lot_requeue *order)
{
	for (struct waiter *w = a->waiters.head, *next; w; w = next) {
		next = w->next;
		if (!waits_for(w, from, UINT32_MAX))
			continue;
		if (order->woken < order->wake) {
			struct fz_ticket ticket = w->ticket;

			remove(w);
			fz_wake(ticket, FZ_WHY_DONE);
			order->woken++;
		} else if (order->moved < order->move) {
			if (from != to) {
				remove(w);
				/* relaxed: see leave_queue(). */
				atomic_store_explicit(&w->word, to, memory_order_relaxed);
				append(&b->waiters, w);
			}
			order->moved++;
		} else {
			break;
		}
	}
}

bool fz_lot_requeue(const _Atomic uint32_t *from, const _Atomic uint32_t *to,
		    const uint32_t *expected, struct fz_lot_requeue *order)
{
	struct fz_fiber *self = caller();
	struct bucket *a = bucket_of(from), *b = bucket_of(to);
	bool nested = stays_outside(self);
	bool differs;

	order->woken = order->moved = 0;
	if (!nested)
		fz_enter_runtime(self);
	lock_two(a, b);
	/* acquire: as in fz_lot_wait_bits(). */
	differs = expected && atomic_load_explicit(from, memory_order_acquire) != *expected;
	if (!differs)
		requeue_locked(a, b, from, to, order);
	unlock_two(a, b);
	if (!nested)
		fz_leave_runtime(self);
	return !differs;
}

void fz_lot_after_fork(void)
{
	fz_sys_forget_pages(fz_buckets, sizeof(fz_buckets));
}
