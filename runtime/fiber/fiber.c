/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/fiber.h"

#include <asm/errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>

#include "runtime/fiber/adopt.h"
#include "runtime/signal/altstack.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/fiber/cputime.h"
#include "runtime/base/die.h"
#include "runtime/fiber/make.h"
#include "runtime/fiber/pool.h"
#include "runtime/base/host.h"
#include "runtime/sync/lot.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/signal/queue.h"
#include "runtime/fiber/stack.h"

/*
 * Virtual tids: above the kernel's largest (PID_MAX_LIMIT), below what fits the
 * owner field of a futex (FUTEX_TID_MASK).
 */
enum {
	TID_FIRST = (1 << 22) + 1,
	TID_LAST = (1 << 30) - 1,
	TID_BATCH = 256,
};

__thread struct fz_fiber fz_self_record;
struct fz_layout fz_layout;
struct fz_host fz_host;

/* Guarded by lock unless atomic. */
static struct {
	struct fz_lock lock;
	struct fz_fiber *all;
	_Atomic uint32_t alive;
	_Atomic int next_tid;
	_Atomic(struct fz_fiber *) main;
} registry = { .next_tid = TID_FIRST, .alive = 1 };

uint32_t fz_fiber_alive(void)
{
	return atomic_load_explicit(&registry.alive, memory_order_relaxed);
}

bool fz_fiber_each(bool (*visit)(struct fz_fiber *, void *), void *arg)
{
	bool stopped = false;

	fz_lock_acquire(&registry.lock);
	for (struct fz_fiber *f = registry.all; f && !stopped; f = f->all.next)
		stopped = visit(f, arg);
	fz_lock_release(&registry.lock);
	return stopped;
}

int fz_fiber_kernel_tid(const struct fz_fiber *f)
{
	return f->carrier->tid;
}

struct fz_fiber *fz_fiber_main(void)
{
	return atomic_load_explicit(&registry.main, memory_order_acquire);
}

static void enlist(struct fz_fiber *f)
{
	fz_lock_acquire(&registry.lock);
	f->all.prev = NULL;
	f->all.next = registry.all;
	if (registry.all)
		registry.all->all.prev = f;
	registry.all = f;
	/* relaxed: only the last decrement means anything; main counts from the start. */
	if (!f->thread.is_main)
		atomic_fetch_add_explicit(&registry.alive, 1, memory_order_relaxed);
	fz_signal_thread_started(f);
	fz_lock_release(&registry.lock);
}

/* Returns true if it was the last thread. */
static bool delist(struct fz_fiber *f)
{
	bool last;

	fz_lock_acquire(&registry.lock);
	if (f->all.prev)
		f->all.prev->all.next = f->all.next;
	else
		registry.all = f->all.next;
	if (f->all.next)
		f->all.next->all.prev = f->all.prev;
	if (f->kind == FZ_KIND_FIBER)
		fz_signal_thread_ended(f);
	/* acq_rel: who exits the process sees what all others did before. */
	last = atomic_fetch_sub_explicit(&registry.alive, 1, memory_order_acq_rel) == 1;
	fz_lock_release(&registry.lock);
	return last;
}

void fz_fiber_native_started(void)
{
	/* relaxed: only the last decrement means anything. */
	atomic_fetch_add_explicit(&registry.alive, 1, memory_order_relaxed);
}

void fz_fiber_native_ended(void)
{
	/* acq_rel: as in delist(). */
	if (atomic_fetch_sub_explicit(&registry.alive, 1, memory_order_acq_rel) == 1)
		fz_host.exit_process(0);
}

static int batch_of_tids(int size)
{
	int first = atomic_fetch_add_explicit(&registry.next_tid, size, memory_order_relaxed);

	/* A billion threads later, start over. */
	if (first > TID_LAST - 2 * TID_BATCH)
		atomic_store_explicit(&registry.next_tid, TID_FIRST, memory_order_relaxed);
	return first;
}

/* p is NULL for a native thread. */
static int new_tid(struct fz_processor *p)
{
	if (!p)
		return batch_of_tids(1);
	if (p->next_tid == p->last_tid) {
		p->next_tid = batch_of_tids(TID_BATCH);
		p->last_tid = p->next_tid + TID_BATCH;
	}
	return p->next_tid++;
}

static struct fz_processor *processor_or_none(const struct fz_fiber *self)
{
	return self->kind == FZ_KIND_FIBER ? fz_processor_of(self) : NULL;
}

/* ---- a life ------------------------------------------------------------- */

static _Noreturn void last_thread_ended(struct fz_fiber *self)
{
	fz_leave_runtime(self);
	fz_host.exit_process(0);
	__builtin_unreachable();
}

/*
 * A wired fiber ends as libc ends a thread: the kernel looks through its robust
 * list, and clears `retiring` after that.
 */
static void retire(struct fz_fiber *self)
{
	fz_enter_runtime(self);
	if (delist(self))
		last_thread_ended(self);
	/* What libc believes to run here never ends. */
	fz_adopt_cut_signals(self->carrier->libc_tcb);
	self->carrier->tid = 0;
	atomic_store_explicit(&self->thread.retiring, 1, memory_order_relaxed);
	fz_syscall1(__NR_set_tid_address, (long)&self->thread.retiring);
	/* acq_rel: as in fz_fiber_buried(). */
	atomic_fetch_or_explicit(&self->thread.life, FZ_LIFE_ENDED | FZ_LIFE_RETIRED,
				 memory_order_acq_rel);
	fz_lot_wake(&self->thread.life, 1);
	/* Its mask is full from here on: no handler runs on a thread that ended. */
	fz_sys_sigmask(2 /* SIG_SETMASK */, &(uint64_t){ FZ_SIGNALS_ALL }, NULL);
	/* What the kernel gave to this thread since it is in here is for others. */
	fz_signal_give_back(self);
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
}

void fz_fiber_wire(struct fz_fiber *self)
{
	const int leader = (int)fz_sys_getpid();
	struct fz_carrier *c;

	if (self->kind != FZ_KIND_FIBER)
		return;
	fz_enter_runtime(self);
	/*
	 * Not on the process's first kernel thread: its tid is in locks that main()
	 * took before there were fibers, and as it ended /proc/self would be a zombie's.
	 * Nor on one whose end a process would be told, that another thread has made.
	 */
	while ((self->carrier->tid == leader || self->carrier->parent) && !self->thread.is_main) {
		if (fz_sched_move(self))
			continue;
		fz_leave_runtime(self);
		fz_announce(self);
		if (fz_carrier_start())
			fz_die("no memory for a kernel thread");
		fz_enter_runtime(self);
	}
	c = self->carrier;
	fz_cputime_wire(self);
	fz_sched_give_up(self);
	fz_signal_wire(self);
	fz_syscall2(__NR_set_robust_list, (long)self->thread.robust_list, 3 * sizeof(void *));
	/* relaxed: only its own thread compares it. */
	atomic_store_explicit(fz_tcb_tid(self->tcb), c->tid, memory_order_relaxed);
	fz_leave_runtime(self);
}

static void live(struct fz_fiber *self)
{
	fz_sched_arrived(self);
	for (;;) {
		fz_leave_runtime(self);
		if (self->thread.recycled)
			fz_host.reset_thread_state();
		fz_host.run_thread(self->thread.start, self->thread.arg, &self->thread.result);
		/* The child of a fork: what other threads it has, libc has made and counts. */
		if (self->kind == FZ_KIND_NATIVE)
			return;
		/* relaxed: nobody cancels it any more, see claim_for_join(). */
		atomic_fetch_or_explicit(fz_tcb_cancelhandling(self->tcb), FZ_CANCEL_EXITING,
					 memory_order_relaxed);
		if (self->thread.is_main)
			fz_fiber_main_ended();
		if (self->kind == FZ_KIND_WIRED) {
			retire(self);
			return;
		}
		fz_enter_runtime(self);
		self->thread.recycled = true;
		if (delist(self))
			last_thread_ended(self);
		/* Signals that came too late for this thread are for others. */
		fz_signal_give_back(self);
		fz_sched_end(self);
	}
}

struct fz_fiber *fz_fiber_take_joiner(struct fz_fiber *self)
{
	return fz_lot_take(&self->thread.life);
}

void fz_fiber_buried(struct fz_fiber *f)
{
	/*
	 * release: the result, for the joiner's acquire; acquire: pairs with
	 * fz_fiber_detach().
	 */
	uint32_t life = atomic_fetch_or_explicit(&f->thread.life, FZ_LIFE_ENDED,
						 memory_order_acq_rel);

	/* Detached while it is being joined: the joiner frees it. */
	if ((life & (FZ_LIFE_DETACHED | FZ_LIFE_JOINING)) == FZ_LIFE_DETACHED) {
		/* release: a stale handle finds FREE, not an old life. */
		atomic_store_explicit(&f->thread.life, FZ_LIFE_FREE, memory_order_release);
		fz_pool_put(fz_processor_of(fz_self()), f);
	} else {
		fz_lot_wake(&f->thread.life, 1);
	}
}

int fz_fiber_create(const struct fz_birth *birth, unsigned long *ret_handle)
{
	struct fz_fiber *self = fz_self();
	struct fz_fiber *f;
	int err;

	fz_enter_runtime(self);
	f = fz_pool_get(processor_or_none(self), birth);
	if (!f) {
		err = fz_fiber_make(self, birth, live, &f);
		if (err) {
			fz_leave_runtime(self);
			return err;
		}
	}
	f->thread.start = birth->start;
	f->thread.arg = birth->arg;
	f->thread.result = NULL;
	f->thread.joins = NULL;
	f->mask = birth->mask;
	f->mem.asked_guard = birth->guard_size;
	f->sig.injecting = f->sig.owed = 0;
	atomic_store_explicit(&f->cpu_bound_score, 0, memory_order_relaxed);
	f->sig.between_lives = true;
	/* Its predecessor may have been cancelled in sigsuspend. */
	f->sig.suspended = false;
	f->sig.restores_mask = false;
	fz_alt_stack_init(f);
	fz_sigqueue_clear(f);
	f->cpu.user_seen = f->cpu.system_seen = 0;
	atomic_store_explicit(&f->cpu.time, 0, memory_order_relaxed);
	atomic_store_explicit(&f->cpu.time_seen, 0, memory_order_relaxed);
	if (self->kind == FZ_KIND_NATIVE)
		fz_syscall5(__NR_prctl, PR_GET_NAME, (long)f->thread.name, 0, 0, 0);
	else
		__builtin_memcpy(f->thread.name, self->thread.name, sizeof(f->thread.name));
	/* relaxed, all of them: fz_sched_ready() publishes the fiber. */
	atomic_store_explicit(&f->in_runtime, 1, memory_order_relaxed);
	f->thread.tid = new_tid(processor_or_none(self));
	atomic_store_explicit(fz_tcb_tid(f->tcb), f->thread.tid, memory_order_relaxed);
	fz_frame_inherit_fenv(f->sp);
	/* Whoever cancelled its predecessor too late did not mean this one. */
	atomic_store_explicit(fz_tcb_cancelhandling(f->tcb), 0, memory_order_relaxed);
	atomic_store_explicit(&f->cancel.sent, false, memory_order_relaxed);
	atomic_store_explicit(&f->cancel.seen, false, memory_order_relaxed);
	/* release: before anybody else can hold the handle. */
	atomic_store_explicit(&f->thread.life, birth->detached ? FZ_LIFE_DETACHED : 0,
			      memory_order_release);
	enlist(f);
	*ret_handle = f->tcb + (uintptr_t)fz_layout.handle;
	fz_sched_ready(f);
	/* A new thread means that the program wants two at a time. */
	if (fz_sched.count > 1)
		fz_sched_kick();
	fz_leave_runtime(self);
	return 0;
}

/* An ended fiber that nobody else can name any more. */
static void free_ended(struct fz_fiber *self, struct fz_fiber *f)
{
	/* The main thread's stack, and one that libc has ended, have no next life. */
	if (f->thread.is_main || atomic_load_explicit(&f->thread.life, memory_order_relaxed) & FZ_LIFE_RETIRED)
		return;
	/* release: a stale handle finds FREE, not an old life. */
	atomic_store_explicit(&f->thread.life, FZ_LIFE_FREE, memory_order_release);
	fz_enter_runtime(self);
	fz_pool_put(processor_or_none(self), f);
	fz_leave_runtime(self);
}

/* Its stack is libc's no more, but the record in it stays: no next life. */
static void bury_retired(struct fz_fiber *f)
{
	/* acquire: the kernel thread is gone, and what it had locked free. */
	while (atomic_load_explicit(&f->thread.retiring, memory_order_acquire))
		fz_syscall4(__NR_futex, (long)&f->thread.retiring, FUTEX_WAIT, 1, 0);
	fz_stack_trim(f->mem.stack, (char *)f - 4096);
	/* release: a stale handle finds FREE, not an old life. */
	atomic_store_explicit(&f->thread.life, FZ_LIFE_FREE, memory_order_release);
}

static int claim_for_join(struct fz_fiber *self, struct fz_fiber *f)
{
	/* acquire: pairs with fz_fiber_buried(). */
	uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

	do {
		if (life & FZ_LIFE_FREE)
			return -ESRCH;
		if (life & FZ_LIFE_DETACHED)
			return -EINVAL;
		/* Before JOINING, as glibc has it: not if one of them is cancelled. */
		if ((f == self || (f->thread.joins == self && !(life & FZ_LIFE_ENDED) &&
				   !fz_cancel_is_leaving(f))) &&
		    !fz_cancel_requested(self))
			return -EDEADLK;
		if (life & FZ_LIFE_JOINING)
			return -EINVAL;
	} while (!atomic_compare_exchange_weak_explicit(
		&f->thread.life, &life, life | FZ_LIFE_JOINING, memory_order_acq_rel,
		memory_order_acquire));
	return 0;
}

int fz_fiber_join(struct fz_fiber *f, fz_nsec deadline, void **ret_result)
{
	struct fz_fiber *self = fz_self();
	int err;

	if (deadline == 0) {
		uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

		if (!(life & (FZ_LIFE_ENDED | FZ_LIFE_FREE | FZ_LIFE_DETACHED)))
			return -EBUSY;
	}
	err = claim_for_join(self, f);
	if (err)
		return err;
	self->thread.joins = f;
	fz_cancel_defer(self);
	for (;;) {
		/* acquire: pairs with fz_fiber_buried(). */
		uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_acquire);

		if (life & FZ_LIFE_ENDED)
			break;
		err = fz_lot_wait(&f->thread.life, life, deadline, FZ_WAIT_CANCEL | FZ_WAIT_SIGNAL);
		if (err == -ETIMEDOUT || err == -ECANCELED) {
			self->thread.joins = NULL;
			/*
			 * release: who joins next sees nothing of ours; acquire: pairs with
			 * fz_fiber_buried(), which left it to us if it was detached meanwhile.
			 */
			life = atomic_fetch_and_explicit(&f->thread.life, ~(uint32_t)FZ_LIFE_JOINING,
							 memory_order_acq_rel);
			if (life & FZ_LIFE_ENDED && life & FZ_LIFE_DETACHED)
				free_ended(self, f);
			fz_cancel_undefer(self);
			return err;
		}
	}
	self->thread.joins = NULL;
	if (ret_result)
		*ret_result = f->thread.result;
	if (atomic_load_explicit(&f->thread.life, memory_order_relaxed) & FZ_LIFE_RETIRED)
		bury_retired(f);
	else
		free_ended(self, f);
	fz_cancel_undefer(self);
	return 0;
}

int fz_fiber_detach(struct fz_fiber *f)
{
	struct fz_fiber *self = fz_self();
	/* acq_rel: pairs with fz_fiber_buried(); one of us two frees it. */
	uint32_t life = atomic_load_explicit(&f->thread.life, memory_order_relaxed);

	do {
		if (life & FZ_LIFE_FREE)
			return -ESRCH;
		if (life & FZ_LIFE_DETACHED)
			return -EINVAL;
	} while (!atomic_compare_exchange_weak_explicit(
		&f->thread.life, &life, life | FZ_LIFE_DETACHED, memory_order_acq_rel,
		memory_order_relaxed));
	/* A joiner that has the claim already frees it as well. */
	if (!(life & FZ_LIFE_ENDED) || life & FZ_LIFE_JOINING)
		return 0;
	free_ended(self, f);
	return 0;
}

_Noreturn void fz_fiber_vanish(struct fz_fiber *self, int status)
{
	bool last;

	if (self->kind == FZ_KIND_WIRED) {
		retire(self);
		fz_syscall1(__NR_exit, status);
	}
	fz_enter_runtime(self);
	last = delist(self);
	if (last)
		fz_syscall1(__NR_exit_group, status);
	if (self->thread.is_main)
		atomic_store_explicit(&registry.main, NULL, memory_order_release);
	fz_signal_give_back(self);
	/* acq_rel: as in fz_fiber_buried().  Retired: nobody frees it. */
	atomic_fetch_or_explicit(&self->thread.life, FZ_LIFE_ENDED | FZ_LIFE_RETIRED,
				 memory_order_acq_rel);
	fz_lot_wake(&self->thread.life, 1);
	for (;;) {
		fz_wait_arm(self, 0);
		fz_park(self, FZ_FOREVER);
	}
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

/* ---- the main thread ---------------------------------------------------- */

static void carry_main(struct fz_fiber *context)
{
	fz_sched_arrived(context);
	fz_sched_run_carrier(context->carrier);
}

int fz_fiber_prepare_main(struct fz_fiber **ret_context)
{
	enum { CONTEXT_STACK = 256 * 1024 };
	void *stack;
	size_t size;
	int err = fz_stack_alloc(CONTEXT_STACK, 4096, &stack, &size);

	return err ? err : fz_adopt_context(stack, size, carry_main, ret_context);
}

void fz_fiber_adopt_main(struct fz_fiber *context)
{
	struct fz_fiber *self = fz_self();
	struct fz_processor *p = &fz_sched.processors[0];
	struct fz_carrier *c;
	size_t list_size;

	self->tcb = fz_tcb_get();
	fz_syscall3(__NR_get_robust_list, 0, (long)&self->thread.robust_list, (long)&list_size);
	c = fz_carrier_new(context, (int)fz_sys_gettid(), self->tcb);
	if (!c)
		fz_die("no memory for the first carrier");
	fz_adopt_cut_rseq();
	fz_syscall5(__NR_prctl, PR_GET_NAME, (long)self->thread.name, 0, 0, 0);
	self->thread.tid = c->tid;
	self->thread.is_main = true;
	self->mask = c->kernel_mask;
	self->carrier = c;
	fz_alt_stack_adopt(self, c);
	c->processor = p;
	fz_cputime_adopt(self);
	/* relaxed: no other thread of ours exists yet. */
	atomic_store_explicit(&p->owner, (uintptr_t)c | FZ_OWNER_USER, memory_order_relaxed);
	enlist(self);
	self->kind = FZ_KIND_FIBER;
	/* release: pairs with fz_fiber_main(). */
	atomic_store_explicit(&registry.main, self, memory_order_release);
}

_Noreturn void fz_fiber_main_ended(void)
{
	struct fz_fiber *self = fz_self();

	atomic_store_explicit(&registry.main, NULL, memory_order_release);
	fz_enter_runtime(self);
	if (delist(self))
		last_thread_ended(self);
	fz_signal_give_back(self);
	/*
	 * To libc it is the kernel thread that it began as, which goes on: setuid must
	 * not take it for one that exits.  relaxed: nobody cancels it any more.
	 */
	atomic_fetch_and_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)),
				  ~(FZ_CANCEL_EXITING | FZ_CANCEL_CANCELED), memory_order_relaxed);
	/* acq_rel: as in fz_fiber_buried(); it may be joined. */
	atomic_fetch_or_explicit(&self->thread.life, FZ_LIFE_ENDED, memory_order_acq_rel);
	fz_lot_wake(&self->thread.life, 1);
	/* Wired, its kernel thread stays too, and must not be the one that handlers run on. */
	if (self->kind == FZ_KIND_WIRED)
		fz_sys_sigmask(2 /* SIG_SETMASK */, &(uint64_t){ FZ_SIGNALS_ALL }, NULL);
	/* Its stack stays: argv, environ and the like live there. */
	for (;;) {
		fz_wait_arm(self, 0);
		fz_park(self, FZ_FOREVER);
	}
}

void fz_fiber_alone(void)
{
	/* relaxed: there is nobody else. */
	atomic_store_explicit(&registry.alive, 1, memory_order_relaxed);
}

void fz_fiber_after_fork(void)
{
	struct fz_fiber *self = fz_self();
	struct fz_fiber keep = *self;

	__builtin_memset(&registry, 0, sizeof(registry));
	fz_pool_after_fork();
	fz_fiber_alone();
	/* Batches that the parent gave out are not used twice here. */
	atomic_store_explicit(&registry.next_tid, TID_FIRST, memory_order_relaxed);
	__builtin_memset(self, 0, sizeof(*self));
	self->mask = keep.mask;
	self->mem.stack = keep.mem.stack;
	self->mem.stack_size = keep.mem.stack_size;
	self->mem.guard_size = keep.mem.guard_size;
	__builtin_memcpy(self->thread.name, keep.thread.name, sizeof(self->thread.name));
}
