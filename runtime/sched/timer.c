/* SPDX-License-Identifier: MIT */
#include "runtime/sched/timer.h"

#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sched_internal.h"

_Atomic bool fz_clock_is_used;

/* ns by which CLOCK_REALTIME was ahead at the last look; relaxed: fz_clock_is_used publishes the first value. */
static _Atomic int64_t ahead_before;

void fz_timers_init(struct fz_timers *t)
{
	fz_lock_init(&t->lock, FZ_RANK_HEAP);
	t->used = 0;
	atomic_store_explicit(&t->earliest, FZ_FOREVER, memory_order_relaxed);
}

static void place(struct fz_timers *t, uint32_t slot, struct fz_fiber *f)
{
	t->heap[slot] = f;
	f->timer.slot = slot;
}

static void sift_up(struct fz_timers *t, uint32_t slot, struct fz_fiber *f)
{
	while (slot > 1 && t->heap[slot / 2]->timer.deadline > f->timer.deadline) {
		place(t, slot, t->heap[slot / 2]);
		slot /= 2;
	}
	place(t, slot, f);
}

static void sift_down(struct fz_timers *t, uint32_t slot, struct fz_fiber *f)
{
	for (;;) {
		uint32_t child = slot * 2;

		if (child > t->used)
			break;
		if (child < t->used &&
		    t->heap[child + 1]->timer.deadline < t->heap[child]->timer.deadline)
			child++;
		if (t->heap[child]->timer.deadline >= f->timer.deadline)
			break;
		place(t, slot, t->heap[child]);
		slot = child;
	}
	place(t, slot, f);
}

static bool is_heap(const struct fz_timers *t)
{
	for (uint32_t slot = 1; slot <= t->used; slot++)
		if (t->heap[slot]->timer.slot != slot ||
		    (slot > 1 && t->heap[slot / 2]->timer.deadline > t->heap[slot]->timer.deadline))
			return false;
	return true;
}

static void publish_earliest(struct fz_timers *t)
{
	fz_nsec earliest = t->used ? t->heap[1]->timer.deadline : FZ_FOREVER;

	FZ_ASSERT_SLOW(is_heap(t));
	/* relaxed: see fz_timers_earliest(). */
	atomic_store_explicit(&t->earliest, earliest, memory_order_relaxed);
}

static void remove_locked(struct fz_timers *t, struct fz_fiber *f)
{
	uint32_t slot = f->timer.slot;
	struct fz_fiber *last = t->heap[t->used--];

	f->timer.slot = 0;
	if (last != f) {
		if (slot > 1 && t->heap[slot / 2]->timer.deadline > last->timer.deadline)
			sift_up(t, slot, last);
		else
			sift_down(t, slot, last);
	}
	publish_earliest(t);
}

static bool grow_locked(struct fz_timers *t)
{
	uint32_t capacity = t->capacity ? t->capacity * 2 : 1024;
	long mem = fz_sys_map_table(capacity * sizeof(*t->heap));

	if (fz_sys_failed(mem))
		return false;
	if (t->heap) {
		__builtin_memcpy((void *)mem, t->heap, t->capacity * sizeof(*t->heap));
		fz_sys_unmap_table(t->heap, t->capacity * sizeof(*t->heap));
	}
	t->heap = (struct fz_fiber **)mem;
	t->capacity = capacity;
	return true;
}

bool fz_timer_add(struct fz_processor *p, struct fz_fiber *f, fz_nsec deadline,
		  uint64_t number)
{
	struct fz_timers *t = &p->timers;

	fz_lock_acquire(&t->lock);
	if (t->used + 1 >= t->capacity && !grow_locked(t)) {
		fz_lock_release(&t->lock);
		return false;
	}
	f->timer.deadline = deadline;
	f->timer.wait = number;
	f->timer.processor = p;
	sift_up(t, ++t->used, f);
	publish_earliest(t);
	fz_lock_release(&t->lock);
	return true;
}

void fz_timer_remove(struct fz_fiber *f)
{
	struct fz_processor *p = f->timer.processor;

	if (!p)
		return;
	fz_lock_acquire(&p->timers.lock);
	if (f->timer.slot)
		remove_locked(&p->timers, f);
	fz_lock_release(&p->timers.lock);
	f->timer.processor = NULL;
}

static bool is_realtime(const struct fz_fiber *f)
{
	return f->timer.deadline == f->by_realtime;
}

bool fz_timers_has_realtime(struct fz_timers *t)
{
	bool has = false;

	fz_lock_acquire(&t->lock);
	for (uint32_t slot = 1; slot <= t->used && !has; slot++)
		has = is_realtime(t->heap[slot]);
	fz_lock_release(&t->lock);
	return has;
}

void fz_timers_advance(struct fz_timers *t, fz_nsec gained)
{
	fz_lock_acquire(&t->lock);
	for (uint32_t slot = 1; slot <= t->used; slot++) {
		struct fz_fiber *f = t->heap[slot];

		/* A deadline of 0 would mean "do not wait". */
		if (is_realtime(f))
			f->timer.deadline = f->by_realtime =
				f->timer.deadline > gained ? f->timer.deadline - gained : 1;
		sift_up(t, slot, f);
	}
	publish_earliest(t);
	fz_lock_release(&t->lock);
}

uint32_t fz_timers_expire(struct fz_timers *t, fz_nsec now)
{
	struct fz_ticket due[32];
	uint32_t n, total = 0;

	do {
		n = 0;
		fz_lock_acquire(&t->lock);
		while (n < 32 && t->used && t->heap[1]->timer.deadline <= now) {
			struct fz_fiber *f = t->heap[1];

			due[n++] = (struct fz_ticket){ f, f->timer.wait };
			remove_locked(t, f);
		}
		fz_lock_release(&t->lock);
		for (uint32_t i = 0; i < n; i++)
			fz_wake(due[i], FZ_WHY_TIMEOUT);
		total += n;
	} while (n == 32);
	return total;
}

/* Returns false if the thread was interrupted between the two clocks. */
static bool read_ahead(int64_t *ret_ahead)
{
	const fz_nsec longest = 100 * FZ_USEC, before = fz_now(), realtime = fz_now_realtime(), after = fz_now();

	*ret_ahead = (int64_t)(realtime - after);
	return after - before < longest;
}

void fz_clock_begin(void)
{
	int64_t ahead;

	if (!read_ahead(&ahead))
		return;
	atomic_store_explicit(&ahead_before, ahead, memory_order_relaxed);
	/* release: pairs with fz_clock_look(). */
	atomic_store_explicit(&fz_clock_is_used, true, memory_order_release);
}

long fz_clock_wait(const void *word, uint32_t expected, fz_nsec left)
{
	const struct __kernel_timespec until = fz_timespec(fz_now_realtime() + left);

	return fz_syscall6(__NR_futex, (long)word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
			   expected, (long)&until, 0, FUTEX_BITSET_MATCH_ANY);
}

void fz_clock_look_at(int64_t ahead)
{
	/* More than the two readings differ by, less than anybody sets a clock by. */
	const int64_t step = FZ_MSEC, gained = ahead - atomic_load_explicit(&ahead_before, memory_order_relaxed);

	atomic_store_explicit(&ahead_before, ahead, memory_order_relaxed);
	if (FZ_LIKELY(gained < step))
		return;
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		fz_timers_advance(&p->timers, (fz_nsec)gained);
		/* A carrier that waits has told the kernel the earliest deadline of before. */
		if ((owner_load(p) & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING)
			fz_backend_kick(&p->backend);
	}
}

void fz_clock_look(void)
{
	int64_t ahead;

	/* acquire: pairs with fz_clock_begin(). */
	if (atomic_load_explicit(&fz_clock_is_used, memory_order_acquire) && read_ahead(&ahead))
		fz_clock_look_at(ahead);
}

bool fz_clock_is_awaited(void)
{
	bool awaited = false;

	/* relaxed: the monitor is not asleep before it has seen what the program's threads did (`asleep`). */
	if (!atomic_load_explicit(&fz_clock_is_used, memory_order_relaxed))
		return false;
	for (uint32_t i = 0; i < fz_sched.count && !awaited; i++)
		awaited = fz_timers_has_realtime(&fz_sched.processors[i].timers);
	return awaited;
}
