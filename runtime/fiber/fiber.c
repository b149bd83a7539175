/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/fiber.h"

#include <linux/mman.h>
#include <linux/prctl.h>

#include "runtime/base/die.h"
#include "runtime/base/host.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/make.h"
#include "runtime/fiber/pool.h"
#include "runtime/fiber/registry.h"
#include "runtime/fiber/wire.h"
#include "runtime/sched/birth.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/queue.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

__thread struct fz_fiber fz_self_record;
struct fz_layout fz_layout;

static void live(struct fz_fiber *self)
{
	fz_sched_arrived(self);
	/* relaxed: only the thread itself compares its tid. */
	atomic_store_explicit(fz_tcb_tid(self->tcb), self->thread.tid, memory_order_relaxed);
	for (;;) {
		fz_leave_runtime(self);
		if (self->thread.recycled)
			fz_host.reset_thread_state();
		fz_host.run_thread(self->thread.start, self->thread.arg, &self->thread.result);
		/* This is the child of a fork: libc has made all other threads and counts them. */
		if (self->kind == FZ_KIND_NATIVE)
			return;
		/* relaxed: no thread cancels it any more, see claim_for_join(). */
		atomic_fetch_or_explicit(fz_tcb_cancelhandling(self->tcb), FZ_CANCEL_EXITING,
					 memory_order_relaxed);
		if (self->thread.is_main)
			fz_fiber_main_ended();
		fz_host.release_thread_state();
		fz_enter_runtime(self);
		self->thread.recycled = true;
		if (fz_registry_remove(self))
			fz_registry_last_ended(self);
		if (FZ_UNLIKELY(self->kind == FZ_KIND_WIRED))
			fz_fiber_unwire(self);
		/* Pass signals that came too late for this thread on to other threads. */
		fz_signal_give_back(self);
		fz_sched_end(self);
		if (fz_adopt_ends(self))
			return;
	}
}

static _Atomic bool stacks_executable;

/* If mprotect fails, the stack stays as it is: the system forbids executable stacks. */
static void make_executable(struct fz_fiber *f)
{
	/* acquire: pairs with the release below: whoever reads true finds the stack executable. */
	if (atomic_load_explicit(&f->mem.executable, memory_order_acquire) || f->thread.is_main)
		return;
	fz_syscall3(__NR_mprotect, (long)f->mem.stack, (long)FZ_ROUND_UP(f->mem.stack_size, 4096),
		    PROT_READ | PROT_WRITE | PROT_EXEC);
	atomic_store_explicit(&f->mem.executable, true, memory_order_release);
}

static bool visit_to_make_executable(struct fz_fiber *f, void *arg)
{
	(void)arg;
	make_executable(f);
	return false;
}

void fz_fiber_stacks_executable(void)
{
	static _Atomic bool done;
	struct fz_fiber *self = fz_self();

	/* acquire: pairs with the release below; the caller's own stack is executable. */
	if (atomic_load_explicit(&done, memory_order_acquire))
		return;
	/*
	 * relaxed: the registry's lock orders it.  A fiber that the visit does not find is added
	 * after the visit, and its creator then sees the flag.
	 */
	atomic_store_explicit(&stacks_executable, true, memory_order_relaxed);
	fz_enter_runtime(self);
	fz_fiber_each(visit_to_make_executable, NULL);
	fz_leave_runtime(self);
	atomic_store_explicit(&done, true, memory_order_release);
}

/* Replace what the record keeps of its last life, except the name and the tid, which the caller sets. */
static void begin_life(struct fz_fiber *f, const struct fz_birth *birth)
{
	f->thread.start = birth->start;
	f->thread.arg = birth->arg;
	f->thread.result = NULL;
	f->thread.joins = NULL;
	f->thread.wired_why = NULL;
	/* The last life may have left a call by a jump, or by its end. */
	f->thread.counted_as_one = false;
	f->call.in_fork = false;
	/* relaxed: the thread does not run. */
	f->thread.first_wait = atomic_load_explicit(&f->wait, memory_order_relaxed) >>
			       FZ_WAIT_NUMBER_SHIFT;
	atomic_store_explicit(&f->thread.policy, 0, memory_order_relaxed);
	f->mask = birth->mask;
	f->mem.asked_guard = birth->guard_size;
	f->sig.injecting = f->sig.owed = 0;
	/* A fault's handler may have left the last life's last bar by a jump. */
	f->sig.barred = 0;
	atomic_store_explicit(&f->cpu_bound_score, 0, memory_order_relaxed);
	f->sig.between_lives = true;
	/* The thread of the last life may have been cancelled in a call such as sigsuspend or ppoll, which sets these. */
	f->sig.suspended = false;
	f->sig.restores_mask = false;
	fz_alt_stack_init(f);
	fz_sigqueue_clear(f);
	fz_cputime_begin(f);
}

int fz_fiber_create(const struct fz_birth *birth, unsigned long *ret_handle)
{
	struct fz_fiber *self = fz_self();
	struct fz_fiber *f;
	int err;

	fz_enter_runtime(self);
	f = fz_pool_get(fz_processor_or_none(self), birth);
	if (!f) {
		err = fz_fiber_make(self, birth, live, &f);
		if (err) {
			fz_leave_runtime(self);
			return err;
		}
	}
	begin_life(f, birth);
	if (self->kind != FZ_KIND_FIBER)
		fz_syscall5(__NR_prctl, PR_GET_NAME, (long)f->thread.name, 0, 0, 0);
	else
		__builtin_memcpy(f->thread.name, self->thread.name, sizeof(f->thread.name));
	f->thread.tid = fz_registry_new_tid(fz_processor_or_none(self));
	/* In the first life the fiber's own kernel thread does this: it inherits the creator's fenv and gs base. */
	if (f->thread.recycled) {
		/* relaxed, here and below: fz_sched_ready() publishes the fiber. */
		atomic_store_explicit(fz_tcb_tid(f->tcb), f->thread.tid, memory_order_relaxed);
		fz_frame_inherit(f->sp);
		/* Drop a cancellation request that came too late for the last life. */
		atomic_store_explicit(fz_tcb_cancelhandling(f->tcb), 0, memory_order_relaxed);
	}
	atomic_store_explicit(&f->cancel.sent, false, memory_order_relaxed);
	atomic_store_explicit(&f->cancel.seen, false, memory_order_relaxed);
	atomic_store_explicit(&f->cancel.in_call, false, memory_order_relaxed);
	/* release: set before any other thread can hold the handle. */
	atomic_store_explicit(&f->thread.life, birth->detached ? FZ_LIFE_DETACHED : 0,
			      memory_order_release);
	fz_registry_add(f);
	if (FZ_UNLIKELY(atomic_load_explicit(&stacks_executable, memory_order_relaxed)))
		make_executable(f);
	*ret_handle = f->tcb + (uintptr_t)fz_layout.handle;
	fz_birth_begin(f);
	fz_leave_runtime(self);
	return 0;
}

_Noreturn void fz_fiber_vanish(struct fz_fiber *self, int status)
{
	bool last;

	fz_enter_runtime(self);
	last = fz_registry_remove(self);
	if (last)
		fz_syscall1(__NR_exit_group, status);
	if (self->thread.is_main)
		fz_registry_set_main(NULL);
	if (self->kind == FZ_KIND_WIRED && self->thread.is_main)
		fz_fiber_main_stays(self);
	if (self->kind == FZ_KIND_WIRED)
		fz_fiber_unwire(self);
	fz_signal_give_back(self);
	/*
	 * The joiner of a RETIRED fiber gives most of the fiber's stack back, so ENDED must not be set before
	 * the switch has left this context. relaxed: fz_fiber_buried() publishes it.
	 */
	atomic_fetch_or_explicit(&self->thread.life, FZ_LIFE_RETIRED, memory_order_relaxed);
	fz_waits_for(self, FZ_FOR_END, NULL);
	fz_sched_end(self);
	__builtin_unreachable();
}
