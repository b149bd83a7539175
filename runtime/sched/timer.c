/* SPDX-License-Identifier: MIT */
#include "runtime/sched/timer.h"

#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sched_internal.h"

_Atomic bool fz_clock_is_used;

#define UNKNOWN INT64_MIN
_Atomic int64_t fz_clock_ahead = UNKNOWN;
/* ns: more than readings of the two clocks differ by when nobody sets one; and less than anybody sets a clock by. */
enum { STEP = 1000000 };

void fz_timers_init(struct fz_timers *t)
{
	fz_lock_init(&t->lock, FZ_RANK_HEAP);
	t->used = 0;
	atomic_store_explicit(&t->realtime, 0, memory_order_relaxed);
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

static void count_realtime(struct fz_timers *t, int change)
{
	/* relaxed: written with the lock held; a reader samples. */
	const uint32_t n = atomic_load_explicit(&t->realtime, memory_order_relaxed);

	atomic_store_explicit(&t->realtime, n + (uint32_t)change, memory_order_relaxed);
}

static bool is_near(int64_t a, int64_t b)
{
	return a - b < STEP && b - a < STEP;
}

/* The deadline of f's wait until a time of CLOCK_REALTIME; never 0, which would mean "do not wait". */
static fz_nsec deadline_of(const struct fz_fiber *f, int64_t ahead)
{
	const int64_t at = (int64_t)f->clock.at - ahead;

	return at > 0 ? (fz_nsec)at : 1;
}

/*
 * The caller may wait once more, with a deadline that came of the time before the clock was set.  Or the monitor has seen
 * only now that it was set, before the caller has read it.  So take the earlier one, unless it is as good as equal.  If the
 * monitor has seen nothing since the caller has read the clock, the deadline is right: the monitor may be the one that is
 * behind.
 */
static fz_nsec earlier(const struct fz_fiber *f, fz_nsec deadline)
{
	/* relaxed: the monitor moves the timer if it sees a change later. */
	const int64_t ahead = atomic_load_explicit(&fz_clock_ahead, memory_order_relaxed);
	const fz_nsec now = ahead == f->clock.seen || ahead == UNKNOWN ? deadline : deadline_of(f, ahead);

	return now + 2 * STEP < deadline ? now : deadline;
}

static void remove_locked(struct fz_timers *t, struct fz_fiber *f)
{
	uint32_t slot = f->timer.slot;
	struct fz_fiber *last = t->heap[t->used--];

	f->timer.slot = 0;
	if (FZ_UNLIKELY(f->timer.by_realtime))
		count_realtime(t, -1);
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
	f->timer.by_realtime = deadline == f->clock.deadline;
	if (FZ_UNLIKELY(f->timer.by_realtime)) {
		count_realtime(t, 1);
		f->timer.deadline = earlier(f, deadline);
	}
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

void fz_timers_set_clock(struct fz_timers *t, int64_t ahead)
{
	/* The lock also orders fz_timer_add(): it has counted its timer, or sees the new `ahead`. */
	fz_lock_acquire(&t->lock);
	if (!atomic_load_explicit(&t->realtime, memory_order_relaxed)) {
		fz_lock_release(&t->lock);
		return;
	}
	for (uint32_t slot = 1; slot <= t->used; slot++) {
		struct fz_fiber *f = t->heap[slot];

		const fz_nsec deadline = deadline_of(f, ahead);

		if (f->timer.by_realtime &&
		    (deadline + STEP < f->timer.deadline || f->timer.deadline + STEP < deadline))
			f->timer.deadline = deadline;
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

fz_nsec fz_clock_until(struct fz_fiber *self, fz_nsec at)
{
	/* acquire: the clock is read afterwards.  Written by fz_clock_look_at(). */
	int64_t seen = atomic_load_explicit(&fz_clock_ahead, memory_order_acquire);
	const fz_nsec realtime = fz_now_realtime(), now = fz_now();
	const int64_t ahead = (int64_t)(realtime - now);

	if (at <= realtime)
		return 1;
	/*
	 * The clock was set since the monitor's last look.  The monitor must look at this wait also if the clock is set to
	 * what it was before the next one.  relaxed: if the monitor overwrites this, fz_timer_add() sees it.
	 */
	if (FZ_UNLIKELY(seen != UNKNOWN && !is_near(seen, ahead))) {
		seen = UNKNOWN;
		atomic_store_explicit(&fz_clock_ahead, seen, memory_order_relaxed);
	}
	fz_clock_note(self, at, now + (at - realtime), seen);
	return self->clock.deadline;
}

bool fz_clock_goes_on(struct fz_fiber *self, fz_nsec *deadline)
{
	if (FZ_LIKELY(*deadline != self->clock.deadline) || fz_now_realtime() >= self->clock.at)
		return false;
	*deadline = fz_clock_until(self, self->clock.at);
	return true;
}

long fz_clock_wait(const void *word, uint32_t expected, fz_nsec at)
{
	const struct __kernel_timespec until = fz_timespec(at);

	return fz_syscall6(__NR_futex, (long)word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
			   expected, (long)&until, 0, FUTEX_BITSET_MATCH_ANY);
}

void fz_clock_look_at(int64_t ahead)
{
	const int64_t before = atomic_load_explicit(&fz_clock_ahead, memory_order_relaxed);

	if (FZ_LIKELY(before != UNKNOWN && is_near(ahead, before)))
		return;
	/* relaxed: fz_timers_set_clock() orders it. */
	atomic_store_explicit(&fz_clock_ahead, ahead, memory_order_relaxed);
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		fz_timers_set_clock(&p->timers, ahead);
		/* A carrier that waits has told the kernel the earliest deadline of before. */
		if ((owner_load(p) & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING)
			fz_backend_kick(&p->backend);
	}
}

void fz_clock_look(void)
{
	enum { TRIES = 5 };
	const fz_nsec longest = 100 * FZ_USEC;

	/* relaxed: the waiting thread's timer is seen at a later look. */
	if (!atomic_load_explicit(&fz_clock_is_used, memory_order_relaxed))
		return;
	/* Again if the monitor was interrupted in between. */
	for (int i = 0; i < TRIES; i++) {
		const fz_nsec before = fz_now(), realtime = fz_now_realtime(), after = fz_now();

		if (after - before < longest) {
			fz_clock_look_at((int64_t)(realtime - after));
			return;
		}
	}
}

bool fz_clock_is_awaited(void)
{
	uint32_t n = 0;

	/* relaxed: a thread that begins such a wait later wakes the monitor first (fz_monitor_note_activity()). */
	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += atomic_load_explicit(&fz_sched.processors[i].timers.realtime, memory_order_relaxed);
	return n != 0;
}
