/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/cputime.h"

#include "runtime/base/lock.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

_Atomic bool fz_cputime_exact;

/* Held while exact times are switched on, and while the monitor takes a sample. */
static struct fz_lock start_lock = FZ_LOCK(FZ_RANK_CPU_TIME);

uint64_t fz_cputime_of_tid(int tid)
{
	struct __kernel_timespec ts;
	/* The kernel's encoding of a thread's CPU clock (CPUCLOCK_SCHED | PERTHREAD). */
	long clock = (long)(~(unsigned long)(unsigned)tid << 3 | 6);

	if (fz_syscall2(__NR_clock_gettime, (int)clock, (long)&ts))
		return 0;
	return (uint64_t)ts.tv_sec * FZ_SEC + (uint64_t)ts.tv_nsec;
}

static void add(struct fz_fiber *f, uint64_t used)
{
	/* relaxed: it is a sum, and nothing else depends on it. */
	atomic_fetch_add_explicit(&f->cpu.time, used, memory_order_relaxed);
}

void fz_cputime_switch(struct fz_carrier *c, struct fz_fiber *from)
{
	uint64_t now = fz_cputime_of_tid(0);
	/* relaxed, here and below: see running_time(). */
	uint64_t mark = atomic_load_explicit(&c->cpu_mark, memory_order_relaxed);

	atomic_store_explicit(&c->cpu_mark, now, memory_order_relaxed);
	add(from, now - mark);
}

static void mark_carrier(struct fz_carrier *c, void *arg)
{
	(void)arg;
	struct fz_fiber *f = atomic_load_explicit(&c->running, memory_order_acquire);

	/* The mark of a wired thread's carrier is in use already. */
	if (c->tid && !(f && f->kind == FZ_KIND_WIRED))
		atomic_store_explicit(&c->cpu_mark, fz_cputime_of_tid(c->tid),
				      memory_order_relaxed);
}

static void start(struct fz_fiber *self)
{
	fz_enter_runtime(self);
	fz_lock_acquire(&start_lock);
	if (!atomic_load_explicit(&fz_cputime_exact, memory_order_relaxed)) {
		fz_carrier_each(mark_carrier, NULL);
		/* release: publishes the marks; pairs with fz_cputime_of() and switch_to(). */
		atomic_store_explicit(&fz_cputime_exact, true, memory_order_release);
	}
	fz_lock_release(&start_lock);
	fz_leave_runtime(self);
}

/*
 * CPU time of f since its carrier switched to it, ns; 0 if f does not run.  f may leave the
 * carrier meanwhile: then cpu.time or cpu_mark has changed, and the caller looks again.
 */
static uint64_t running_time(const struct fz_fiber *f, struct fz_carrier *c)
{
	uint64_t mark, now;

	/* acquire: pairs with the store in switch_to(). */
	if (!c || atomic_load_explicit(&c->running, memory_order_acquire) != f)
		return 0;
	mark = atomic_load_explicit(&c->cpu_mark, memory_order_relaxed);
	now = fz_cputime_of_tid(c == fz_self()->carrier ? 0 : c->tid);
	if (atomic_load_explicit(&c->running, memory_order_acquire) != f ||
	    atomic_load_explicit(&c->cpu_mark, memory_order_relaxed) != mark)
		return 0;
	return now > mark ? now - mark : 0;
}

uint64_t fz_cputime_of(struct fz_fiber *f)
{
	uint64_t total, before, seen;

	/* acquire: pairs with start(). */
	if (!atomic_load_explicit(&fz_cputime_exact, memory_order_acquire))
		start(fz_self());
	do {
		before = atomic_load_explicit(&f->cpu.time, memory_order_relaxed);
		total = before + running_time(f, f->carrier);
	} while (atomic_load_explicit(&f->cpu.time, memory_order_relaxed) != before);
	/* The time must not go backwards: return at least what was returned before. */
	seen = atomic_load_explicit(&f->cpu.time_seen, memory_order_relaxed);
	while (seen < total &&
	       !atomic_compare_exchange_weak_explicit(&f->cpu.time_seen, &seen, total,
						      memory_order_relaxed,
						      memory_order_relaxed))
		continue;
	return seen < total ? total : seen;
}

void fz_cputime_adopt(struct fz_fiber *self)
{
	uint64_t now = fz_cputime_of_tid(0);

	atomic_store_explicit(&self->cpu.time, now, memory_order_relaxed);
	atomic_store_explicit(&self->carrier->cpu_mark, now, memory_order_relaxed);
	self->carrier->seen_cpu_time = now;
	atomic_store_explicit(&self->carrier->running, self, memory_order_release);
}

void fz_cputime_wire(struct fz_fiber *self)
{
	/* acquire: pairs with start(). */
	if (atomic_load_explicit(&fz_cputime_exact, memory_order_acquire))
		fz_cputime_switch(self->carrier, self);
	else
		mark_carrier(self->carrier, NULL);
}

void fz_cputime_sample(struct fz_carrier *c)
{
	uint64_t now, before = c->seen_cpu_time;
	struct fz_fiber *f;

	if (atomic_load_explicit(&fz_cputime_exact, memory_order_relaxed) || !c->tid ||
	    !fz_lock_try(&start_lock))
		return;
	/* Once start() has set the marks, a sample would count CPU time twice. */
	if (!atomic_load_explicit(&fz_cputime_exact, memory_order_relaxed)) {
		/* acquire: pairs with the store in switch_to(); a record is never unmapped. */
		f = atomic_load_explicit(&c->running, memory_order_acquire);
		now = fz_cputime_of_tid(c->tid);
		c->seen_cpu_time = now;
		if (f && f->kind == FZ_KIND_FIBER && before && now > before)
			add(f, now - before);
	}
	fz_lock_release(&start_lock);
}

void fz_cputime_after_fork(void)
{
	atomic_store_explicit(&fz_cputime_exact, false, memory_order_relaxed);
	fz_lock_init(&start_lock, FZ_RANK_CPU_TIME);
}
