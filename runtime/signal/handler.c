/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/handler.c - around a handler of the program: the state with which the handler
 * is called, and the state that is restored when it has returned.
 */
#include "runtime/signal/signal_internal.h"

#include <ucontext.h>

#include "runtime/base/time.h"
#include "runtime/sched/carrier.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/overrun.h"

/*
 * A handler begins in a call with a mask of its own. If it is the first handler, make its return
 * restore the mask from before the call. Returns false for a handler on top of the first, which
 * may make such calls itself.
 */
static bool restore_when_it_ends(struct fz_fiber *self, uint64_t mask, void *ucontext)
{
	ucontext_t *uc = ucontext;
	uint64_t interrupted;

	/* The handler may leave the call by siglongjmp. */
	self->sig.restores_mask = false;
	__builtin_memcpy(&interrupted, &uc->uc_sigmask, sizeof(interrupted));
	if (interrupted != mask || self->kind != FZ_KIND_FIBER)
		return false;
	__builtin_memcpy(&uc->uc_sigmask, &self->sig.mask_to_restore,
			 sizeof(self->sig.mask_to_restore));
	return true;
}

struct __kernel_timespec *fz_signal_limit(struct fz_fiber *self, fz_nsec deadline)
{
	const fz_nsec now = fz_now(), left = deadline > now ? deadline - now : 0;

	self->sig.limit = fz_timespec(deadline == FZ_FOREVER ? FZ_FOREVER : left);
	/* From here on a handler sets the limit to 0 itself. */
	atomic_signal_fence(memory_order_seq_cst);
	if (fz_signal_handled(self))
		self->sig.limit = (struct __kernel_timespec){ 0 };
	return &self->sig.limit;
}

/* What calls made by the handler itself overwrite. */
struct interrupted {
	struct fz_fiber_clock until;
	const void *object;		/* with waits_for: of a wait that is about to begin, to be shown */
	uint32_t handlers;
	uint8_t handled, waits_for;
};

/* With the handler that is about to run counted. */
static struct interrupted interrupted(const struct fz_fiber *self)
{
	return (struct interrupted){
		.until = self->clock,
		.object = self->waits.object,
		.handlers = self->sig.handlers_run + 1,
		.handled = self->handled | FZ_HANDLED_ANY,
		.waits_for = self->call.waits_for,
	};
}

static void restore(struct fz_fiber *self, const struct interrupted *was)
{
	self->sig.handlers_run = was->handlers;
	self->sig.limit = (struct __kernel_timespec){ 0 };
	self->handled = was->handled;
	self->clock = was->until;
	self->call.waits_for = was->waits_for;
	self->waits.object = was->object;
}

void fz_signal_call_handler(struct fz_fiber *self, int sig, void *info, void *ucontext)
{
	struct fz_action a = fz_signal_action_get(sig);
	uint64_t mask = self->mask, during, counted = self->sig.mask_counted;
	uint64_t to_restore = self->sig.mask_to_restore;
	bool suspended = self->sig.suspended, restores = self->sig.restores_mask;
	struct interrupted was = interrupted(self);

	if (FZ_UNLIKELY(a.flags & FLAG_RESETHAND))
		a = fz_signal_action_once(sig);
	if ((uintptr_t)a.handler <= 1) {
		/* The action has changed since the signal was sent, or the signal is only substituted. */
		if (!a.handler)
			fz_signal_default(sig);
		return;
	}
	during = mask | a.mask;
	if (!(a.flags & FLAG_NODEFER))
		during |= fz_signal_bit(sig);
	was.handled |= a.flags & FLAG_RESTART ? 0 : FZ_HANDLED_EINTR;
	/* While the handler runs, the kernel thread has the mask `during`, and perhaps no alternate stack. */
	if (self->kind == FZ_KIND_FIBER) {
		self->mask = during & ~FZ_SIGNALS_OF_LIBC;
		self->carrier->kernel_mask = self->mask;
		if (FZ_UNLIKELY(self->has_alt_stack))
			fz_alt_stack_handler_began(self);
	}
	if (FZ_UNLIKELY(restores) && restore_when_it_ends(self, mask, ucontext))
		restores = false;
	/* The handler may leave the call by siglongjmp. */
	self->sig.suspended = false;
	if (suspended)
		atomic_fetch_and_explicit(&self->pending, ~FZ_SIGNAL_HANDLED,
					  memory_order_relaxed);
	if (FZ_UNLIKELY(self->sig.sigwait_set) && self->kind == FZ_KIND_FIBER)
		fz_signal_wait_interrupted(self);
	fz_overrun_tell(info);
	a.handler(sig, info, ucontext);
	self->sig.suspended = suspended;
	if (FZ_UNLIKELY(restores)) {
		self->sig.restores_mask = true;
		self->sig.mask_to_restore = to_restore;
	}
	restore(self, &was);
	if (suspended)
		atomic_fetch_or_explicit(&self->pending, FZ_SIGNAL_HANDLED, memory_order_relaxed);
	if (self->kind == FZ_KIND_FIBER) {
		/*
		 * Block all signals until the return restores `mask`, maybe on another carrier: a
		 * handler that began in between would take the kernel's mask for the fiber's.
		 */
		fz_signal_load_mask(self->carrier, FZ_SIGNALS_ALL);
		self->mask = mask;
		if (FZ_UNLIKELY(self->sig.mask_counted != counted))
			fz_signal_recount(self, counted);
	}
}

/*
 * Send this kernel thread its next pending signal, to be delivered when the handler returns.
 * One at a time: when the handler of that signal ends, the next one is sent. Returns false if a
 * pending signal will not be delivered that way.
 */
static bool owe_next(struct fz_fiber *self, uint64_t mask)
{
	uint8_t before = self->sig.injecting;
	struct fz_signode *node;

	/* The signal owed before is still on its way, or its handler has been interrupted further down on this stack. */
	if (fz_signal_is_owed(self))
		return false;
	self->sig.owed = 0;
	self->sig.injecting = SIG_CANCEL;
	atomic_signal_fence(memory_order_seq_cst);
	while ((node = fz_sigqueue_receive(self, ~mask & ~self->sig.sigwait_set)) &&
	       fz_signal_takes_no_notice(node->sig))
		fz_signode_free(node);
	if (node) {
		struct fz_siginfo info = node->info;

		self->sig.owed = (uint8_t)node->sig;
		if (fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), fz_sys_gettid(),
				node->sig, (long)&info) == 0) {
			fz_signode_free(node);
			node = NULL;
		} else {
			/* The kernel has no room for the signal: the monitor nudges instead. */
			self->sig.owed = 0;
			fz_sigqueue_add(self, node);
			fz_signal_undelivered();
		}
	}
	atomic_signal_fence(memory_order_seq_cst);
	self->sig.injecting = before;
	return !node;
}

bool fz_signal_owe(struct fz_fiber *self, uint64_t mask)
{
	/* relaxed: a signal that comes later is followed by a nudge. */
	return FZ_LIKELY(!(atomic_load_explicit(&self->pending, memory_order_relaxed) & ~mask &
			   ~self->sig.sigwait_set & ~FZ_SIGNALS_OF_LIBC)) ||
	       owe_next(self, mask);
}

/*
 * Take signals that became pending for the process while the handler blocked them. Sets in_runtime
 * without waiting for a processor: the handler may have interrupted libc's fork, which holds locks,
 * and the threads that could give this thread a processor may wait for those locks.
 */
static void take_meanwhile(struct fz_fiber *self, uint64_t mask)
{
	/*
	 * In a child of fork whose atfork handlers have not run yet, the process lock may be
	 * held by a thread that does not exist there.
	 */
	if (fz_sys_gettid() != self->carrier->tid)
		return;
	/* relaxed, and signal fences: only handlers on this thread read in_runtime. */
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	fz_signal_take_from_process(self, ~mask);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
}

void fz_signal_handler_ends(struct fz_fiber *self, uint64_t before, uint64_t mask,
			    struct fz_alt_stack *alt_stack)
{
	/*
	 * Adopt the mask only if the handler has changed it. An unchanged mask that differs
	 * from self->mask means that this handler has interrupted another handler that has just
	 * begun, maybe inside libc's fork, where entering the runtime is not allowed.
	 */
	const bool changed = before != mask;

	if (self->kind != FZ_KIND_FIBER ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	mask &= ~(FZ_SIGNALS_OF_LIBC | fz_signal_bit(SIG_KILL) | fz_signal_bit(SIG_STOP));
	/*
	 * Block all signals, as in fz_signal_call_handler(). Adopting a mask may end on another
	 * carrier, with a kernel mask of its own: look again after it.
	 */
	for (bool looked = false;;) {
		if (self->carrier->kernel_mask != FZ_SIGNALS_ALL)
			fz_signal_load_mask(self->carrier, FZ_SIGNALS_ALL);
		if (FZ_UNLIKELY(changed && mask != self->mask)) {
			fz_signal_adopt_mask(self, mask);
			continue;
		}
		if (looked || FZ_LIKELY(!fz_signal_has_come(~mask)))
			break;
		looked = true;
		take_meanwhile(self, mask);
	}
	/*
	 * self->mask, not `mask`: if this handler interrupts fz_signal_apply_mask(), the kernel
	 * will have self->mask in a moment.
	 */
	self->carrier->kernel_mask = self->mask;
	if (FZ_UNLIKELY(self->has_alt_stack || alt_stack->size ||
			self->carrier->report_stack.size))
		fz_alt_stack_handler_ends(self, alt_stack);
	fz_signal_owe(self, mask);
}
