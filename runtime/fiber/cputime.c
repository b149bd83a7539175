/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/cputime.h"

#include "runtime/base/lock.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

/* The time of all new threads is exact once the program has asked for the time of more threads than this. */
enum { ASKED_MOST = 8 };

_Atomic bool fz_cputime_exact;
static _Atomic uint32_t asked;	/* threads whose time became exact, in all */

/* Held while the time of a fiber becomes exact, and while the monitor takes a sample. */
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

static bool is_exact(const struct fz_fiber *f)
{
	/* acquire: pairs with be_exact(), which sets the mark before `exact` if the fiber asks for its own time. */
	return atomic_load_explicit(&f->cpu.exact, memory_order_acquire);
}

/*
 * Note that f's turn on c begins now; NULL: a turn that is not exact.  Only by the carrier's own
 * kernel thread.  release: a thread that sees cpu_marked sees cpu_mark, too.
 */
static void mark(struct fz_carrier *c, const struct fz_fiber *f, uint64_t now)
{
	atomic_store_explicit(&c->cpu_mark, now, memory_order_relaxed);
	atomic_store_explicit(&c->cpu_marked, f, memory_order_release);
}

/* Is the mark of c the beginning of f's turn? */
static bool is_marked(const struct fz_carrier *c, const struct fz_fiber *f)
{
	return atomic_load_explicit(&c->cpu_marked, memory_order_acquire) == f;
}

void fz_cputime_switch(struct fz_carrier *c, struct fz_fiber *from, const struct fz_fiber *to)
{
	const bool ends = is_exact(from), begins = to && is_exact(to);
	uint64_t now;

	if (FZ_LIKELY(!ends && !begins))
		return;
	now = fz_cputime_of_tid(0);
	if (ends && is_marked(c, from)) {
		/* relaxed: this thread has written it. */
		const uint64_t used = now - atomic_load_explicit(&c->cpu_mark, memory_order_relaxed);

		add(from, used);
		/* relaxed: if a sample sees this too early or too late, the next one makes up for it. */
		atomic_fetch_add_explicit(&c->cpu_exact, used, memory_order_relaxed);
	}
	mark(c, begins ? to : NULL, now);
}

/*
 * Add what c has used since the last sample, less its exact turns, to the fiber that runs on c.
 * Not if that fiber has a mark: then its turn is exact.  If a mark is set or removed meanwhile, the
 * next sample counts the time.
 */
static void sample_locked(struct fz_carrier *c)
{
	/* acquire: pairs with the store in switch_to(); a record is never unmapped. */
	struct fz_fiber *f = atomic_load_explicit(&c->running, memory_order_acquire);
	const int tid = c->tid;
	const uint64_t before = c->cpu_sampled, used = tid ? fz_cputime_of_tid(tid) : 0;
	const uint64_t exact = atomic_load_explicit(&c->cpu_exact, memory_order_relaxed);
	uint64_t sampled;

	if (!tid || (f && is_exact(f) && is_marked(c, f)) ||
	    atomic_load_explicit(&c->running, memory_order_acquire) != f)
		return;
	sampled = used > exact ? used - exact : 0;
	if (sampled <= before)
		return;
	c->cpu_sampled = sampled;
	if (f && f->kind == FZ_KIND_FIBER && before)
		add(f, sampled - before);
}

/* Does f run in a turn that it has not begun with a mark?  A hint. */
static bool runs_unmarked(const struct fz_fiber *f)
{
	const struct fz_carrier *c = f->carrier;

	return c && f->kind == FZ_KIND_FIBER && !is_marked(c, f) &&
	       atomic_load_explicit(&c->running, memory_order_relaxed) == f;
}

/*
 * Make f's time exact.  If f is not the caller, its present turn gets no mark and is sampled until
 * it ends.  So take a sample here: the monitor does not look at carriers without a processor.
 */
static void be_exact(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_lock_acquire(&start_lock);
	if (runs_unmarked(f)) {
		sample_locked(f->carrier);
		if (f == self)
			mark(self->carrier, self, fz_cputime_of_tid(0));
	}
	if (!is_exact(f)) {
		/* release: pairs with is_exact(). */
		atomic_store_explicit(&f->cpu.exact, true, memory_order_release);
		atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
		/* relaxed: a switch that does not see this yet counts as one before it. */
		atomic_store_explicit(&fz_cputime_exact, true, memory_order_relaxed);
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
	uint64_t begin, now;

	/* acquire: pairs with the store in switch_to(). */
	if (!c || atomic_load_explicit(&c->running, memory_order_acquire) != f || !is_marked(c, f))
		return 0;
	begin = atomic_load_explicit(&c->cpu_mark, memory_order_relaxed);
	now = fz_cputime_of_tid(c == fz_self()->carrier ? 0 : c->tid);
	if (atomic_load_explicit(&c->running, memory_order_acquire) != f || !is_marked(c, f) ||
	    atomic_load_explicit(&c->cpu_mark, memory_order_relaxed) != begin)
		return 0;
	return now > begin ? now - begin : 0;
}

uint64_t fz_cputime_of(struct fz_fiber *f)
{
	uint64_t total, before, seen;

	if (FZ_UNLIKELY(!is_exact(f) || runs_unmarked(f)))
		be_exact(f);
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

void fz_cputime_begin(struct fz_fiber *f)
{
	/* relaxed: f does not run yet, and `asked` need not be exact. */
	const bool exact = atomic_load_explicit(&asked, memory_order_relaxed) > ASKED_MOST;

	f->cpu.user_seen = f->cpu.system_seen = 0;
	atomic_store_explicit(&f->cpu.time, 0, memory_order_relaxed);
	atomic_store_explicit(&f->cpu.time_seen, 0, memory_order_relaxed);
	atomic_store_explicit(&f->cpu.exact, exact, memory_order_relaxed);
}

void fz_cputime_adopt(struct fz_fiber *self)
{
	uint64_t now = fz_cputime_of_tid(0);

	atomic_store_explicit(&self->cpu.time, now, memory_order_relaxed);
	atomic_store_explicit(&self->cpu.exact, false, memory_order_relaxed);
	self->carrier->cpu_sampled = now;
	atomic_store_explicit(&self->carrier->running, self, memory_order_release);
}

void fz_cputime_wire(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	fz_cputime_switch(c, self, NULL);
	/* With this mark the fiber's time goes on with the kernel thread's CPU clock. */
	mark(c, self, fz_cputime_of_tid(c->tid));
	atomic_store_explicit(&self->cpu.exact, true, memory_order_release);
}

void fz_cputime_sample(struct fz_carrier *c)
{
	if (!c->tid || !fz_lock_try(&start_lock))
		return;
	sample_locked(c);
	fz_lock_release(&start_lock);
}

void fz_cputime_after_fork(void)
{
	atomic_store_explicit(&fz_cputime_exact, false, memory_order_relaxed);
	atomic_store_explicit(&asked, 0, memory_order_relaxed);
	fz_lock_init(&start_lock, FZ_RANK_CPU_TIME);
}
