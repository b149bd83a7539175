/* SPDX-License-Identifier: MIT */
#include "runtime/lot.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/lock.h"
#include "runtime/park.h"
#include "runtime/sched.h"

enum { BUCKETS = 8192 };

/* On the waiter's stack; in the bucket's list, guarded by its lock. */
struct waiter {
	const void *word;
	struct fz_ticket ticket;
	struct waiter *next, *prev;
	bool queued;		/* false: a waker took it, and that is the wake-up */
};

struct bucket {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
	struct waiter *head, *tail;
};

/* Whole pages, so that a fork's child can drop them without touching them. */
static _Alignas(4096) struct bucket buckets[BUCKETS];

static struct bucket *bucket_of(const void *word)
{
	/* Fibonacci hashing; the top bits are the well-mixed ones. */
	uint64_t hash = (uint64_t)(uintptr_t)word * 0x9e3779b97f4a7c15u;

	return &buckets[hash >> (64 - 13)];
}
_Static_assert(BUCKETS == 1 << 13, "bucket_of() takes 13 bits");

static void append(struct bucket *b, struct waiter *w)
{
	w->next = NULL;
	w->prev = b->tail;
	if (b->tail)
		b->tail->next = w;
	else
		b->head = w;
	b->tail = w;
	w->queued = true;
}

static void remove(struct bucket *b, struct waiter *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		b->head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		b->tail = w->prev;
	w->queued = false;
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

int fz_lot_wait_while(const void *key, bool (*must_wait)(const void *, uint32_t),
		      uint32_t arg, fz_nsec deadline, unsigned flags)
{
	struct fz_fiber *self = fz_self();
	struct bucket *b = bucket_of(key);
	struct waiter w = { .word = key };
	/* Our own threads, inside libc or an allocator; never a fiber. */
	bool nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
	enum fz_why why;
	int ret = -EAGAIN;

	FZ_ASSERT(!nested || self->kind != FZ_KIND_FIBER);
	if (!nested)
		fz_enter_runtime(self);
	fz_lock_acquire(&b->lock);
	/* Who changes the state and then wakes finds us here, or we see the change. */
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
	append(b, &w);
	fz_lock_release(&b->lock);

	why = fz_park(self, deadline);

	ret = 0;
	if (why != FZ_WHY_DONE) {
		fz_lock_acquire(&b->lock);
		if (w.queued) {
			remove(b, &w);
			ret = reason(why);
		}
		fz_lock_release(&b->lock);
	}
out:
	if (!nested)
		fz_leave_runtime(self);
	return ret;
}

static bool word_is(const void *word, uint32_t expected)
{
	/* acquire: pairs with whoever changed it, if we return because of that. */
	return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_acquire) ==
	       expected;
}

int fz_lot_wait(const _Atomic uint32_t *word, uint32_t expected, fz_nsec deadline,
		unsigned flags)
{
	return fz_lot_wait_while(word, word_is, expected, deadline, flags);
}

static uint32_t wake_in_runtime(const void *word, uint32_t n)
{
	struct bucket *b = bucket_of(word);
	uint32_t woken = 0;

	while (woken < n) {
		struct fz_ticket tickets[16];
		uint32_t taken = 0;

		fz_lock_acquire(&b->lock);
		for (struct waiter *w = b->head, *next; w && woken + taken < n; w = next) {
			next = w->next;
			if (w->word != word)
				continue;
			/* After remove() its owner may leave at any time. */
			tickets[taken] = w->ticket;
			remove(b, w);
			/* A native thread's record dies with it: wake it here. */
			if (tickets[taken].fiber->kind != FZ_KIND_FIBER) {
				fz_wake(tickets[taken], FZ_WHY_DONE);
				tickets[taken].number = 0;
			}
			taken++;
			if (taken == 16)
				break;
		}
		fz_lock_release(&b->lock);
		/* One that timed out meanwhile knows from `queued`: it counts. */
		for (uint32_t i = 0; i < taken; i++)
			if (tickets[i].number)
				fz_wake(tickets[i], FZ_WHY_DONE);
		woken += taken;
		if (taken < 16)
			break;
	}
	return woken;
}

uint32_t fz_lot_wake(const void *word, uint32_t n)
{
	struct fz_fiber *self = fz_self();
	uint32_t woken;

	if (atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return wake_in_runtime(word, n);
	fz_enter_runtime(self);
	woken = wake_in_runtime(word, n);
	fz_leave_runtime(self);
	return woken;
}

void fz_lot_after_fork(void)
{
	fz_syscall3(__NR_madvise, (long)buckets, sizeof(buckets), MADV_DONTNEED);
}
