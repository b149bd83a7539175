/* SPDX-License-Identifier: MIT */
/*
 * runtime/fiber/main.c - the main thread becomes a fiber; its end does not end the process.
 */
#include <asm/errno.h>
#include <linux/prctl.h>

#include "runtime/fiber/adopt.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/registry.h"
#include "runtime/fiber/robust.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

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

	if (err)
		return err;
	err = fz_adopt_context(stack, size, carry_main, ret_context);
	if (err)
		fz_stack_free(stack, CONTEXT_STACK, 4096);
	return err;
}

void fz_fiber_adopt_main(struct fz_fiber *context)
{
	struct fz_fiber *self = fz_self();
	struct fz_processor *p = &fz_sched.processors[0];
	struct fz_carrier *c;
	size_t list_size;

	self->tcb = fz_tcb_get();
	fz_syscall3(__NR_get_robust_list, 0, (long)&self->thread.robust_list, (long)&list_size);
	c = fz_carrier_new(context, self->tcb);
	FZ_ASSERT(c);
	fz_adopt_cut_rseq();
	fz_syscall5(__NR_prctl, PR_GET_NAME, (long)self->thread.name, 0, 0, 0);
	self->thread.tid = c->tid;
	self->thread.is_main = true;
	self->mask = c->kernel_mask;
	self->carrier = c;
	fz_alt_stack_adopt(self, c);
	c->processor = p;
	fz_cputime_adopt(self);
	/* relaxed: no other thread uses processors yet. */
	atomic_store_explicit(&p->owner, (uintptr_t)c | FZ_OWNER_USER, memory_order_relaxed);
	fz_registry_add(self);
	self->kind = FZ_KIND_FIBER;
	fz_registry_set_main(self);
}

_Noreturn void fz_fiber_main_ended(void)
{
	struct fz_fiber *self = fz_self();

	fz_registry_set_main(NULL);
	fz_enter_runtime(self);
	if (fz_registry_remove(self))
		fz_registry_last_ended(self);
	fz_fiber_main_stays(self);
}

_Noreturn void fz_fiber_main_stays(struct fz_fiber *self)
{
	/*
	 * If the main thread is wired, its kernel thread stays, too.  No handler may run on it any
	 * more, so block all signals.  The kernel releases robust mutexes only when a kernel thread
	 * ends, so release them here.
	 */
	if (self->kind == FZ_KIND_WIRED) {
		fz_sys_sigmask(2 /* SIG_SETMASK */, &(uint64_t){ FZ_SIGNALS_ALL }, NULL);
		fz_robust_release(self, true);
	}
	fz_signal_give_back(self);
	/*
	 * For libc the main thread's TCB stands for the process's first kernel thread, which goes
	 * on.  Clear the bits of an exiting thread: otherwise setuid would leave that kernel thread
	 * out.  relaxed: no thread cancels it any more.
	 */
	atomic_fetch_and_explicit(fz_tcb_cancelhandling(fz_tcb_of(self)),
				  ~(FZ_CANCEL_EXITING | FZ_CANCEL_CANCELED), memory_order_relaxed);
	/* acq_rel: as in fz_fiber_buried(); the main thread may be joined. */
	atomic_fetch_or_explicit(&self->thread.life, FZ_LIFE_ENDED, memory_order_acq_rel);
	fz_lot_wake(&self->thread.life, 1);
	/* The main thread's stack stays: argv, environ and the like live there. */
	for (;;) {
		fz_waits_for(self, FZ_FOR_END, NULL);
		fz_wait_arm(self, 0);
		fz_park(self, FZ_FOREVER);
	}
}
