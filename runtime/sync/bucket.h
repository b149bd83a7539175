/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_BUCKET_H
#define FZ_RUNTIME_SYNC_BUCKET_H

/*
 * runtime/sync/bucket.h - the buckets of the parking lot, and lists of waiters: those of higher
 * priorities first, and else in the order of their arrival.  For lot.c alone.
 */

#include "runtime/base/lock.h"
#include "runtime/sched/park.h"

/*
 * On the waiter's stack, guarded by the lock of its word's bucket.  A requeue changes `word` under the
 * locks of both buckets.
 */
struct waiter {
	_Atomic(const void *) word;
	uint32_t bits;
	struct fz_ticket ticket;
	struct waiters *list;	/* it is in: its bucket's; or a waker's, which is the wake-up; or NULL: woken */
	struct waiter *next, *prev;
	uint8_t priority;	/* real-time priority when the wait began, or BEFORE_ALL; 0: none */
	bool starves;
};

/* Priority of a waiter that cannot park: it may be the spawner, and fibers need its new carrier. */
enum { BEFORE_ALL = UINT8_MAX };

struct waiters {
	struct waiter *head, *tail;
};

struct bucket {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
	struct waiters waiters;
};

enum { BUCKET_BITS = 13, BUCKETS = 1 << BUCKET_BITS };

/* Defined in lot.c. */
extern struct bucket fz_buckets[BUCKETS];

static inline struct bucket *bucket_of(const void *word)
{
	/* Fibonacci hashing: the top bits are the best mixed. */
	uint64_t hash = (uint64_t)(uintptr_t)word * 0x9e3779b97f4a7c15u;

	return &fz_buckets[hash >> (64 - BUCKET_BITS)];
}

/* With the lock held, as all below. */
static inline bool is_list(const struct waiters *l)
{
	const bool is_bucket = (uintptr_t)l - (uintptr_t)fz_buckets < sizeof(fz_buckets);
	const struct waiter *before = NULL;

	for (const struct waiter *w = l->head; w; before = w, w = w->next)
		if (w->prev != before || w->list != l || (before && before->priority < w->priority) ||
		    (is_bucket && l != &bucket_of(atomic_load_explicit(&w->word, memory_order_relaxed))->waiters))
			return false;
	return l->tail == before;
}

/* Put w behind `before`; NULL: at the head. */
static inline void insert(struct waiters *l, struct waiter *w, struct waiter *before)
{
	w->list = l;
	w->prev = before;
	w->next = before ? before->next : l->head;
	if (w->next)
		w->next->prev = w;
	else
		l->tail = w;
	if (before)
		before->next = w;
	else
		l->head = w;
	FZ_ASSERT_SLOW(is_list(l));
}

/* Put w behind all waiters of its priority.  Inlined: nearly each wait takes this way. */
__attribute__((always_inline)) static inline void append(struct waiters *l, struct waiter *w)
{
	struct waiter *before = l->tail;

	while (before && FZ_UNLIKELY(before->priority < w->priority))
		before = before->prev;
	insert(l, w, before);
}

/* Put w before all waiters of its priority. */
static inline void prepend(struct waiters *l, struct waiter *w)
{
	struct waiter *before = NULL, *next = l->head;

	for (; next && FZ_UNLIKELY(next->priority > w->priority); next = next->next)
		before = next;
	insert(l, w, before);
}

/* Take w out of its list. */
static inline void remove(struct waiter *w)
{
	struct waiters *l = w->list;

	if (w->prev)
		w->prev->next = w->next;
	else
		l->head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		l->tail = w->prev;
	w->list = NULL;
	FZ_ASSERT_SLOW(is_list(l));
}

static inline bool waits_for(const struct waiter *w, const void *word, uint32_t bits)
{
	/* relaxed: the bucket's lock is held. */
	return atomic_load_explicit(&w->word, memory_order_relaxed) == word && w->bits & bits;
}

#endif
