/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/run.c - a thread handles its pending signals: it sends them to itself through the
 * kernel, so that the kernel builds the signal frame.
 */
#include "runtime/fiber/wire.h"
#include "runtime/signal/signal_internal.h"

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/sched/park.h"

int fz_signal_send_here(struct fz_fiber *self, int sig, const struct fz_siginfo *info)
{
	const uint64_t all = ~(uint64_t)0;
	/* A handler that runs in between may call this function, too. */
	uint8_t before = self->sig.injecting;
	uint64_t mask;
	int err;

	self->sig.injecting = (uint8_t)sig;
	self->sig.injected = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	/*
	 * Block all signals: after a handler the fiber might be on another kernel thread than
	 * gettid said.
	 */
	fz_sys_sigmask(HOW_SETMASK, &all, &mask);
	err = (int)fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), fz_sys_gettid(), sig,
			       (long)info);
	/* A filter forbids rt_tgsigqueueinfo: send the signal without siginfo; fz_signal_arrived() fills that in. */
	if (FZ_UNLIKELY(err && err != -EAGAIN)) {
		self->sig.injected = info;
		err = (int)fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sig);
		if (err)
			self->sig.injected = NULL;
	}
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	atomic_signal_fence(memory_order_seq_cst);
	self->sig.injecting = before;
	return err;
}

static void run_pending(struct fz_fiber *self, bool stacked);

/*
 * The handler of sig is about to run in a call with a mask of its own. In the kernel, another
 * pending signal that both this mask and the handler's mask admit would interrupt that handler at
 * its first instruction. So run it first here; the other pending signals stay pending.
 */
static void run_on_top(struct fz_fiber *self, int sig)
{
	struct fz_action a = fz_signal_action_get(sig);
	uint64_t mask = self->mask, during = mask | a.mask, to_restore = self->sig.mask_to_restore;
	bool suspended = self->sig.suspended, restores = self->sig.restores_mask;

	if ((uintptr_t)a.handler <= 1 || self->kind != FZ_KIND_FIBER)
		return;
	if (!(a.flags & FLAG_NODEFER))
		during |= fz_signal_bit(sig);
	/* relaxed: a signal that comes later need not be on top. */
	if (!(atomic_load_explicit(&self->pending, memory_order_relaxed) & ~during &
	      ~FZ_SIGNALS_OF_LIBC))
		return;
	/* A handler on top may leave the call by siglongjmp. */
	self->sig.suspended = false;
	self->sig.restores_mask = false;
	fz_signal_apply_mask(self, during & ~FZ_SIGNALS_OF_LIBC);
	run_pending(self, true);
	if (self->kind == FZ_KIND_FIBER)
		fz_signal_apply_mask(self, mask);
	else
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	self->sig.restores_mask = restores;
	self->sig.mask_to_restore = to_restore;
	self->sig.suspended = suspended;
}

bool fz_signal_set_policy(struct fz_fiber *f, uint32_t before, uint32_t policy)
{
	/* relaxed: `pending` publishes the first policy; take_policy() looks for a later one before it ends. */
	if (!atomic_compare_exchange_strong_explicit(&f->thread.policy, &before, policy,
						     memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	/* seq_cst: the policy is there; pairs with take_policy(), and with the end of a wait. */
	atomic_fetch_or_explicit(&f->pending, FZ_SIGNAL_POLICY, memory_order_seq_cst);
	fz_signal_undelivered();
	/* A parked fiber takes the policy when it continues. */
	if (!fz_wait_is_parked(f))
		fz_signal_interrupt(f, 0);
	return true;
}

/* Another thread has set this thread's scheduling policy: wire this thread, and set the policy of its kernel thread. */
static void take_policy(struct fz_fiber *self)
{
	uint8_t before = self->sig.injecting;
	uint32_t policy, priority;

	/* `injecting` keeps a nudge from taking the policy a second time in the middle of this. */
	self->sig.injecting = SIG_CANCEL;
	atomic_signal_fence(memory_order_seq_cst);
	/* acquire: pairs with fz_signal_set_policy(). */
	atomic_fetch_and_explicit(&self->pending, ~FZ_SIGNAL_POLICY, memory_order_acquire);
	policy = atomic_load_explicit(&self->thread.policy, memory_order_relaxed);
	if (policy) {
		self->thread.owns_kernel_state = true;
		fz_fiber_wire(self);
	}
	while (policy) {
		priority = (uint32_t)FZ_PRIORITY_OF(policy);
		fz_syscall3(__NR_sched_setscheduler, 0, FZ_POLICY_OF(policy), (long)&priority);
		/* release: a thread that reads 0 finds this one wired; pairs with fz_target_of(). */
		if (atomic_compare_exchange_strong_explicit(&self->thread.policy, &policy, 0,
							    memory_order_release,
							    memory_order_relaxed))
			policy = 0;
	}
	atomic_signal_fence(memory_order_seq_cst);
	self->sig.injecting = before;
}

static void run_pending(struct fz_fiber *self, bool stacked)
{
	struct fz_siginfo info;
	struct fz_signode *node;
	int sig;

	/*
	 * Do nothing now.  Pending signals are looked for again when the handler has ended
	 * (fz_signal_owe()), when a life begins (fz_signal_life_begins()), and when the bar ends
	 * (fz_signal_allow()).
	 */
	if (FZ_UNLIKELY(self->sig.handler_ends || self->sig.between_lives || self->sig.barred))
		return;
	/* relaxed: a thread that sets it later also interrupts this one. */
	while (FZ_UNLIKELY(atomic_load_explicit(&self->pending, memory_order_relaxed) &
			   FZ_SIGNAL_POLICY) && !self->sig.injecting)
		take_policy(self);
	/*
	 * `injecting` keeps a nudge from running a later signal of this number before the one that
	 * is taken here. seq_cst: pairs with fz_sigqueue_add().
	 */
	while (atomic_load_explicit(&self->pending, memory_order_seq_cst) &
	       ~self->mask & ~self->sig.sigwait_set & ~FZ_SIGNALS_OF_LIBC) {
		uint8_t before = self->sig.injecting;

		self->sig.injecting = SIG_CANCEL;
		atomic_signal_fence(memory_order_seq_cst);
		node = fz_sigqueue_receive(self, ~self->mask & ~self->sig.sigwait_set);
		if (!node) {
			self->sig.injecting = before;
			break;
		}
		if (FZ_UNLIKELY(self->kind == FZ_KIND_WIRED) && fz_signal_to_kernel(node)) {
			self->sig.injecting = before;
			continue;
		}
		sig = node->sig;
		info = node->info;
		fz_signode_free(node);
		if (FZ_UNLIKELY(stacked || self->sig.restores_mask)) {
			self->sig.injecting = before;
			run_on_top(self, sig);
			self->sig.injecting = SIG_CANCEL;
		}
		/*
		 * If sending fails (RLIMIT_SIGPENDING, a filter), call the handler directly: the kernel
		 * has delivered the signal once, so it must not be lost.
		 */
		if ((uintptr_t)fz_signal_action_get(sig).handler != 1 &&
		    fz_signal_send_here(self, sig, &info))
			fz_host.call_handler(sig, &info);
		atomic_signal_fence(memory_order_seq_cst);
		self->sig.injecting = before;
	}
}

void fz_signal_run_pending(struct fz_fiber *self)
{
	run_pending(self, false);
}

void fz_signal_life_begins(struct fz_fiber *self)
{
	self->sig.between_lives = false;
	atomic_signal_fence(memory_order_seq_cst);
	if (FZ_UNLIKELY(fz_signal_is_due(self)))
		fz_signal_run_pending(self);
}

void fz_signal_allow(struct fz_fiber *self)
{
	atomic_signal_fence(memory_order_seq_cst);
	self->sig.barred--;
	atomic_signal_fence(memory_order_seq_cst);
	if (FZ_UNLIKELY(fz_signal_is_due(self)) &&
	    !atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		fz_signal_run_pending(self);
}

void fz_signal_life_ends(struct fz_fiber *self)
{
	/* A bar that is left behind would keep handlers from running in the next life. */
	FZ_ASSERT_SLOW(!self->sig.barred);
	if (self->kind == FZ_KIND_FIBER || self->kind == FZ_KIND_WIRED)
		self->sig.between_lives = true;
	atomic_signal_fence(memory_order_seq_cst);
}
