/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_RUNQ_H
#define FZ_RUNTIME_SCHED_RUNQ_H

/*
 * runtime/sched/runq.h - a run queue: two FIFOs of runnable fibers, linked through fz_fiber.next
 * one behind the other, and one slot for the fiber that the running fiber has just woken or made.
 *
 * CPU-bound fibers are behind all others, however long they have waited; so that they do not
 * starve, call fz_runq_pop_cpu_bound() from time to time.
 *
 * Every processor has a run queue, and there is a global one.  Any carrier may push,
 * pop or steal; the lock is contended only by stealing.
 */

#include "runtime/base/lock.h"
#include "runtime/fiber/fiber.h"

struct fz_runq {
	struct fz_lock lock;
	/* Fibers in both FIFOs, without the slot.  Written with the lock held, read as a hint. */
	_Atomic uint32_t length;
	struct fz_fiber *head, *tail;	/* guarded by lock */
	struct fz_fiber *last_brief;	/* last fiber that is not CPU-bound, or NULL; by lock */
	_Atomic uint32_t cpu_bound;	/* CPU-bound fibers in length; written with the lock held */
	_Atomic(struct fz_fiber *) slot;	/* any carrier exchanges it, without the lock */
};

static inline void fz_runq_init(struct fz_runq *q)
{
	*q = (struct fz_runq){ .lock = FZ_LOCK(FZ_RANK_QUEUE) };
}

static inline uint32_t fz_runq_length(struct fz_runq *q)
{
	/*
	 * seq_cst: pairs with the increment in fz_runq_push_locked().  An idle carrier
	 * publishes that it waits and then reads the length; a pusher writes the length
	 * and then looks for a carrier that waits.
	 */
	return atomic_load_explicit(&q->length, memory_order_seq_cst);
}

/* How many fibers wait that are not CPU-bound.  A hint; may be below 0 during a push. */
static inline int32_t fz_runq_brief(struct fz_runq *q)
{
	return (int32_t)(fz_runq_length(q) -
			 atomic_load_explicit(&q->cpu_bound, memory_order_relaxed));
}

/* A hint, too. */
static inline bool fz_runq_has_cpu_bound(struct fz_runq *q)
{
	return FZ_UNLIKELY(atomic_load_explicit(&q->cpu_bound, memory_order_relaxed));
}

static inline void fz_runq_count_cpu_bound(struct fz_runq *q, int by)
{
	atomic_store_explicit(&q->cpu_bound,
			      atomic_load_explicit(&q->cpu_bound, memory_order_relaxed) +
				      (uint32_t)by,
			      memory_order_relaxed);
}

/* Under the lock: CPU-bound fibers are last, and the numbers are true. */
static inline bool fz_runq_is_sound(const struct fz_runq *q)
{
	const struct fz_fiber *last = NULL;
	uint32_t n = 0, brief = 0;

	for (const struct fz_fiber *f = q->head; f; last = f, f = f->next) {
		n++;
		if (f == q->last_brief)
			brief = n;
	}
	return last == q->tail && !q->last_brief == !brief &&
	       n == atomic_load_explicit(&q->length, memory_order_relaxed) &&
	       n - brief == atomic_load_explicit(&q->cpu_bound, memory_order_relaxed);
}

static inline void fz_runq_insert_after(struct fz_runq *q, struct fz_fiber *before,
					struct fz_fiber *f)
{
	struct fz_fiber **at = before ? &before->next : &q->head;

	f->next = *at;
	*at = f;
	if (!f->next)
		q->tail = f;
}

static inline void fz_runq_push_locked(struct fz_runq *q, struct fz_fiber *f)
{
	if (FZ_UNLIKELY(fz_fiber_is_cpu_bound(f))) {
		fz_runq_insert_after(q, q->tail, f);
		fz_runq_count_cpu_bound(q, 1);
	} else {
		fz_runq_insert_after(q, q->last_brief, f);
		q->last_brief = f;
	}
	/* seq_cst: pairs with fz_runq_length(). */
	atomic_fetch_add_explicit(&q->length, 1, memory_order_seq_cst);
	FZ_ASSERT_SLOW(fz_runq_is_sound(q));
}

/*
 * With a thousand fibers, the cache holds nothing of the next fiber.  Two steps fetch it, and
 * neither waits for memory.  When a fiber is second in the queue, fz_runq_pop_locked() fetches its
 * record.  When it is first, the record is there, and this function fetches what it points to.
 */
static inline void fz_runq_prefetch(const struct fz_fiber *f)
{
	const char *sp = f->sp;

	__builtin_prefetch((const void *)f->tcb);
	__builtin_prefetch(fz_tcb_tid(f->tcb));
	for (int line = 0; line < 12; line++)
		__builtin_prefetch(sp + line * FZ_CACHE_LINE, 1);
}

/* Remove the fiber behind `before`, or the first if before is NULL.  NULL if there is none. */
static inline struct fz_fiber *fz_runq_remove_after(struct fz_runq *q, struct fz_fiber *before)
{
	struct fz_fiber **at = before ? &before->next : &q->head, *f = *at;

	if (!f)
		return NULL;
	*at = f->next;
	if (!f->next)
		q->tail = before;
	if (f == q->last_brief)
		q->last_brief = before;
	else if (FZ_UNLIKELY(before == q->last_brief))
		fz_runq_count_cpu_bound(q, -1);
	/* relaxed: an idle carrier waits for additions only. */
	atomic_fetch_sub_explicit(&q->length, 1, memory_order_relaxed);
	FZ_ASSERT_SLOW(fz_runq_is_sound(q));
	return f;
}

static inline struct fz_fiber *fz_runq_pop_locked(struct fz_runq *q)
{
	struct fz_fiber *f = fz_runq_remove_after(q, NULL);

	if (q->head) {
		fz_runq_prefetch(q->head);
		if (q->head->next)
			__builtin_prefetch(q->head->next, 1);
	}
	return f;
}

static inline void fz_runq_push(struct fz_runq *q, struct fz_fiber *f)
{
	fz_lock_acquire(&q->lock);
	fz_runq_push_locked(q, f);
	fz_lock_release(&q->lock);
}

static inline struct fz_fiber *fz_runq_pop(struct fz_runq *q)
{
	struct fz_fiber *f;

	/* relaxed: the next look finds a missed push, or the pusher's kick arrives. */
	if (atomic_load_explicit(&q->length, memory_order_relaxed) == 0)
		return NULL;
	fz_lock_acquire(&q->lock);
	f = fz_runq_pop_locked(q);
	fz_lock_release(&q->lock);
	return f;
}

/* Pop the first CPU-bound fiber, or if there is none, the first fiber. */
static inline struct fz_fiber *fz_runq_pop_cpu_bound(struct fz_runq *q)
{
	struct fz_fiber *f;

	/* relaxed: as in fz_runq_pop(). */
	if (atomic_load_explicit(&q->length, memory_order_relaxed) == 0)
		return NULL;
	fz_lock_acquire(&q->lock);
	f = fz_runq_remove_after(q, q->last_brief);
	if (!f)
		f = fz_runq_pop_locked(q);
	fz_lock_release(&q->lock);
	return f;
}

/* Put f into the slot; a fiber that was in the slot goes to the end of its FIFO. */
static inline void fz_runq_push_slot(struct fz_runq *q, struct fz_fiber *f)
{
	/* acq_rel: pairs with fz_runq_pop_slot(); a thief must see the fiber's context. */
	struct fz_fiber *old = atomic_exchange_explicit(&q->slot, f,
							memory_order_acq_rel);

	if (old)
		fz_runq_push(q, old);
}

static inline struct fz_fiber *fz_runq_pop_slot(struct fz_runq *q)
{
	/* relaxed: this only saves the exchange when the slot is empty. */
	if (!atomic_load_explicit(&q->slot, memory_order_relaxed))
		return NULL;
	/* acquire: pairs with fz_runq_push_slot(). */
	return atomic_exchange_explicit(&q->slot, NULL, memory_order_acq_rel);
}

/* Move the fiber in the slot, if any, to the end of its FIFO. */
static inline void fz_runq_empty_slot(struct fz_runq *q)
{
	struct fz_fiber *f = fz_runq_pop_slot(q);

	if (f)
		fz_runq_push(q, f);
}

/*
 * Take half of victim's fibers, at least 1 and at most 64.  The first is returned, the
 * rest go to the end of mine.  Never holds both locks.
 */
static inline struct fz_fiber *fz_runq_steal(struct fz_runq *victim, struct fz_runq *mine)
{
	struct fz_fiber *first = NULL, *last = NULL;
	uint32_t n, taken = 0;

	/* relaxed: a hint. */
	if (atomic_load_explicit(&victim->length, memory_order_relaxed) == 0)
		return NULL;
	fz_lock_acquire(&victim->lock);
	n = atomic_load_explicit(&victim->length, memory_order_relaxed);
	n = n - n / 2;
	if (n > 64)
		n = 64;
	while (taken < n) {
		struct fz_fiber *f = fz_runq_pop_locked(victim);

		if (last)
			last->next = f;
		else
			first = f;
		last = f;
		f->next = NULL;
		taken++;
	}
	fz_lock_release(&victim->lock);
	if (!first || !first->next)
		return first;
	fz_lock_acquire(&mine->lock);
	for (struct fz_fiber *f = first->next, *after; f; f = after) {
		after = f->next;
		fz_runq_push_locked(mine, f);
	}
	fz_lock_release(&mine->lock);
	return first;
}

#endif
