/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/registry.h"

#include "runtime/base/count.h"
#include "runtime/base/host.h"
#include "runtime/base/role.h"
#include "runtime/fiber/pool.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal.h"

/*
 * Virtual tids: above the kernel's largest (PID_MAX_LIMIT), below what fits the
 * owner field of a futex (FUTEX_TID_MASK).
 */
enum {
	TID_FIRST = (1 << 22) + 1,
	TID_LAST = (1 << 30) - 1,
	TID_BATCH = 256,
};

struct fz_registry fz_registry = {
	.lock = FZ_LOCK(FZ_RANK_REGISTRY),
	.next_tid = TID_FIRST,
	.alive = 1,
};

uint32_t fz_fiber_alive(void)
{
	return atomic_load_explicit(&fz_registry.alive, memory_order_relaxed);
}

bool fz_fiber_each(bool (*visit)(struct fz_fiber *, void *), void *arg)
{
	bool stopped = false;

	fz_lock_acquire(&fz_registry.lock);
	for (struct fz_fiber *f = fz_registry.all; f && !stopped; f = f->all.next)
		stopped = visit(f, arg);
	fz_lock_release(&fz_registry.lock);
	return stopped;
}

bool fz_fiber_each_of(void (*visit)(struct fz_fiber *), uint32_t most, bool first)
{
	struct fz_fiber *f;

	fz_lock_acquire(&fz_registry.lock);
	for (f = first ? fz_registry.all : fz_registry.next; f && most; f = f->all.next, most--)
		visit(f);
	fz_registry.next = f;
	fz_lock_release(&fz_registry.lock);
	return f != NULL;
}

int fz_fiber_kernel_tid(const struct fz_fiber *f)
{
	return f->carrier->tid;
}

struct fz_fiber *fz_fiber_main(void)
{
	return atomic_load_explicit(&fz_registry.main, memory_order_acquire);
}

void fz_registry_set_main(struct fz_fiber *f)
{
	/* release: pairs with fz_fiber_main(). */
	atomic_store_explicit(&fz_registry.main, f, memory_order_release);
}

/* With the lock held.  Native threads are counted and not in the list. */
static bool all_are_linked(void)
{
	const struct fz_fiber *before = NULL;
	uint32_t n = 0;

	for (const struct fz_fiber *f = fz_registry.all; f; before = f, f = f->all.next, n++)
		if (f->all.prev != before || !(fz_is_fiber(f) || f->thread.is_main))
			return false;
	return n <= fz_fiber_alive();
}

/* p: of the caller; NULL: none. */
static void count(struct fz_processor *p, enum fz_processor_counter which)
{
	if (p)
		fz_count(p->counts, which, 1);
	else
		fz_count_outside(which, 1);
}

void fz_registry_add(struct fz_fiber *f)
{
	fz_lock_acquire(&fz_registry.lock);
	f->all.prev = NULL;
	f->all.next = fz_registry.all;
	if (fz_registry.all)
		fz_registry.all->all.prev = f;
	fz_registry.all = f;
	/* relaxed: only the last decrement must be ordered; main counts from the start. */
	if (!f->thread.is_main)
		atomic_fetch_add_explicit(&fz_registry.alive, 1, memory_order_relaxed);
	count(fz_processor_or_none(fz_self()), f->thread.recycled ? FZ_COUNT_fibers_recycled :
								    FZ_COUNT_fibers_created);
	fz_count_most(FZ_TOTAL_threads_most, fz_fiber_alive());
	fz_signal_thread_started(f);
	FZ_ASSERT_SLOW(all_are_linked());
	fz_lock_release(&fz_registry.lock);
}

bool fz_registry_remove(struct fz_fiber *f)
{
	bool last, accepted_changed;
	uint64_t before;

	fz_lock_acquire(&fz_registry.lock);
	before = fz_signal_left_to_kernel();
	if (fz_registry.next == f)
		fz_registry.next = f->all.next;
	if (f->all.prev)
		f->all.prev->all.next = f->all.next;
	else
		fz_registry.all = f->all.next;
	if (f->all.next)
		f->all.next->all.prev = f->all.prev;
	if (f->kind == FZ_KIND_FIBER) {
		fz_signal_thread_ended(f);
		count(fz_processor_of(f), FZ_COUNT_fibers_ended);
	}
	FZ_ASSERT_SLOW(all_are_linked());
	/* acq_rel: the thread that exits the process sees what all others did before. */
	last = atomic_fetch_sub_explicit(&fz_registry.alive, 1, memory_order_acq_rel) == 1;
	accepted_changed = fz_signal_left_to_kernel() != before;
	fz_lock_release(&fz_registry.lock);
	/* A signal that only f accepted goes to a native or wired thread from now on, if one accepts it. */
	if (!last && FZ_UNLIKELY(accepted_changed))
		fz_monitor_follow_mask();
	return last;
}

void fz_fiber_native_started(void)
{
	/* relaxed: only the last decrement must be ordered. */
	atomic_fetch_add_explicit(&fz_registry.alive, 1, memory_order_relaxed);
	fz_count_total(FZ_TOTAL_native_threads, 1);
	fz_count_most(FZ_TOTAL_threads_most, fz_fiber_alive());
}

void fz_fiber_native_ended(void)
{
	/* acq_rel: as in fz_registry_remove(). */
	if (atomic_fetch_sub_explicit(&fz_registry.alive, 1, memory_order_acq_rel) == 1)
		fz_host.exit_process(0);
}

static int batch_of_tids(int size)
{
	int first = atomic_fetch_add_explicit(&fz_registry.next_tid, size, memory_order_relaxed);

	/* After about a billion threads the numbers start over. */
	if (first > TID_LAST - 2 * TID_BATCH)
		atomic_store_explicit(&fz_registry.next_tid, TID_FIRST, memory_order_relaxed);
	return first;
}

int fz_registry_new_tid(struct fz_processor *p)
{
	if (!p)
		return batch_of_tids(1);
	if (p->next_tid == p->last_tid) {
		p->next_tid = batch_of_tids(TID_BATCH);
		p->last_tid = p->next_tid + TID_BATCH;
	}
	return p->next_tid++;
}

_Noreturn void fz_registry_last_ended(struct fz_fiber *self)
{
	fz_leave_runtime(self);
	fz_host.exit_process(0);
	__builtin_unreachable();
}

struct search {
	int tid, mask;
	struct fz_fiber *found;
};

static bool has_tid(struct fz_fiber *f, void *arg)
{
	struct search *search = arg;

	if ((f->thread.tid & search->mask) != search->tid)
		return false;
	search->found = f;
	return true;
}

struct fz_fiber *fz_fiber_by_clock_tid(int tid, int mask)
{
	struct search search = { tid, mask, NULL };
	struct fz_fiber *self = fz_self();
	bool nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	if (!nested)
		fz_enter_runtime(self);
	fz_fiber_each(has_tid, &search);
	if (!nested)
		fz_leave_runtime(self);
	return search.found;
}

struct fz_fiber *fz_fiber_by_tid(int tid)
{
	return fz_fiber_by_clock_tid(tid, ~0);
}

void fz_fiber_alone(void)
{
	/* relaxed: there is no other thread. */
	atomic_store_explicit(&fz_registry.alive, 1, memory_order_relaxed);
}

void fz_fiber_after_fork(void)
{
	struct fz_fiber *self = fz_self();
	struct fz_fiber keep = *self;

	__builtin_memset(&fz_registry, 0, sizeof(fz_registry));
	fz_lock_init(&fz_registry.lock, FZ_RANK_REGISTRY);
	/* The child has inherited the name of the kernel thread, which is not the fiber's. */
	if (keep.kind == FZ_KIND_FIBER && fz_host.name_kernel_thread &&
	    (keep.carrier->number || !keep.thread.is_main))
		fz_host.name_kernel_thread(keep.thread.name);
	fz_pool_after_fork();
	fz_fiber_alone();
	fz_role_after_fork();
	/* Start over: batches of tids that the parent gave out are forgotten here. */
	atomic_store_explicit(&fz_registry.next_tid, TID_FIRST, memory_order_relaxed);
	__builtin_memset(self, 0, sizeof(*self));
	self->mask = keep.mask;
	self->mem.stack = keep.mem.stack;
	self->mem.stack_size = keep.mem.stack_size;
	self->mem.guard_size = keep.mem.guard_size;
	__builtin_memcpy(self->thread.name, keep.thread.name, sizeof(self->thread.name));
}
