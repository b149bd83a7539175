/* SPDX-License-Identifier: MIT */
#include "runtime/signal/signal.h"

#include <asm/errno.h>
#include <ucontext.h>

#include "runtime/signal/altstack.h"
#include "runtime/sched/carrier.h"
#include "runtime/base/die.h"
#include "runtime/base/host.h"
#include "runtime/signal/overrun.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"
#include "runtime/fiber/stack.h"

/* ---- arrival ------------------------------------------------------------ */

static bool synchronous(int sig, const struct fz_siginfo_head *info)
{
	if (info->code <= 0)
		return false;
	return sig == SIG_SEGV || sig == SIG_BUS || sig == SIG_FPE || sig == SIG_ILL ||
	       sig == SIG_TRAP || sig == SIG_SYS;
}

static void set_default(int sig)
{
	struct kernel_sigaction dfl = { .handler = NULL };

	kernel_action(sig, &dfl, NULL);
}

void fz_signal_report_overflow(void)
{
	fz_signal_substitute(fz_signal_bit(SIG_SEGV));
}

/* The kernel told us where: in the guard area of the thread that did it? */
static void report_overflow(const struct fz_fiber *self, const struct fz_siginfo_head *info)
{
	/* si_addr is where si_pid and si_uid are. */
	uintptr_t address, low = (uintptr_t)self->mem.stack;
	size_t size;
	void *bottom;

	__builtin_memcpy(&address, &info->pid, sizeof(address));
	if (self->kind != FZ_KIND_FIBER || self->thread.is_main || address >= low ||
	    address < low - self->mem.guard_size)
		return;
	fz_stack_bounds(self->mem.stack, self->mem.stack_size, &bottom, &size);
	fz_say("thread %d (%s) has overflowed its stack of %lu bytes: see FIBERIZE_STACK_SIZE",
	       self->thread.tid, self->thread.name, (unsigned long)size);
}

/*
 * The first handler of a call with a mask of its own.  Returns false if it is one that came
 * on top of it, which may make such calls itself.
 */
static bool restore_when_it_ends(struct fz_fiber *self, uint64_t mask, void *ucontext)
{
	ucontext_t *uc = ucontext;
	uint64_t interrupted;

	/* It may leave the call by siglongjmp. */
	self->sig.restores_mask = false;
	__builtin_memcpy(&interrupted, &uc->uc_sigmask, sizeof(interrupted));
	if (interrupted != mask || self->kind != FZ_KIND_FIBER)
		return false;
	__builtin_memcpy(&uc->uc_sigmask, &self->sig.mask_to_restore, sizeof(self->sig.mask_to_restore));
	return true;
}

struct __kernel_timespec *fz_signal_limit(struct fz_fiber *self, fz_nsec deadline,
					  uint32_t none_run)
{
	const fz_nsec now = fz_now(), left = deadline > now ? deadline - now : 0;

	self->sig.limit = fz_timespec(deadline == FZ_FOREVER ? FZ_FOREVER : left);
	/* From here on a handler does that itself. */
	atomic_signal_fence(memory_order_seq_cst);
	if (self->sig.handlers_run != none_run)
		self->sig.limit = (struct __kernel_timespec){ 0 };
	return &self->sig.limit;
}

/* Call the program's handler: on its own thread, in user code. */
void fz_signal_call_handler(struct fz_fiber *self, int sig, void *info, void *ucontext)
{
	struct fz_action a = fz_signal_action_get(sig);
	uint64_t mask = self->mask, during = mask | a.mask, counted = self->sig.mask_counted;
	uint64_t to_restore = self->sig.mask_to_restore;
	bool suspended = self->sig.suspended, restores = self->sig.restores_mask, eintr;
	uint32_t handlers;

	if ((uintptr_t)a.handler <= 1) {
		/* Changed since it was sent, or ours only. */
		if (!a.handler)
			fz_signal_default(sig);
		return;
	}
	if (!(a.flags & FLAG_NODEFER))
		during |= fz_signal_bit(sig);
	if (a.flags & FLAG_RESETHAND) {
		struct fz_action dfl = { .handler = NULL };
		uint64_t before;

		fz_signal_actions_lock(&before);
		fz_signal_action_set(sig, &dfl);
		fz_signal_actions_unlock(&before);
	}
	handlers = self->sig.handlers_run + 1;
	eintr = self->must_return_eintr || !(a.flags & FLAG_RESTART);
	/* What the kernel has set for the time of the handler. */
	if (self->kind == FZ_KIND_FIBER) {
		self->mask = during & ~FZ_SIGNALS_OF_LIBC;
		self->carrier->kernel_mask = self->mask;
		if (FZ_UNLIKELY(self->has_alt_stack))
			fz_alt_stack_handler_began(self);
	}
	if (FZ_UNLIKELY(restores) && restore_when_it_ends(self, mask, ucontext))
		restores = false;
	/* It may leave the call by siglongjmp. */
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
	/* Whatever calls the handler itself has made meanwhile. */
	self->sig.handlers_run = handlers;
	self->sig.limit = (struct __kernel_timespec){ 0 };
	self->must_return_eintr = eintr;
	if (suspended)
		atomic_fetch_or_explicit(&self->pending, FZ_SIGNAL_HANDLED, memory_order_relaxed);
	if (self->kind == FZ_KIND_FIBER) {
		/*
		 * What the return restores, maybe elsewhere.  Until then the kernel's mask is
		 * not what ours says, and a handler in between would take one for the other.
		 */
		fz_signal_load_mask(self->carrier, FZ_SIGNALS_ALL);
		self->mask = mask;
		if (FZ_UNLIKELY(self->sig.mask_counted != counted))
			fz_signal_recount(self, counted);
	}
}

bool fz_signal_main_is_wired(void)
{
	const struct fz_fiber *main_fiber = fz_fiber_main();

	return main_fiber && main_fiber->kind == FZ_KIND_WIRED;
}

/* Does the main thread want a signal that was sent to the process? */
static bool main_wants(int sig)
{
	struct fz_fiber *main_fiber = fz_fiber_main();

	return main_fiber && main_fiber->kind == FZ_KIND_FIBER &&
	       !(main_fiber->mask & fz_signal_bit(sig));
}

static void arrived_in_runtime(struct fz_fiber *self, int sig, const struct fz_siginfo_head *info,
			       bool directed)
{
	struct fz_signode *node;
	bool own_thread = self->kind == FZ_KIND_NATIVE || self->kind == FZ_KIND_WIRED;

	/* A request on the ring met a closed pipe, or a limit: its caller raises it. */
	if ((sig == SIG_PIPE || sig == SIG_XFSZ) && info->code == CODE_USER && info->pid == (int)fz_sys_getpid())
		return;
	/* Profilers ask where the time goes: to the thread that it hit. */
	if (!own_thread && (self->kind != FZ_KIND_FIBER ||
			    (sig != SIG_PROF && sig != SIG_VTALRM))) {
		fz_signal_leave_to_monitor(sig, info);
		return;
	}
	node = fz_signode_arrived(sig, info, directed || info->code == CODE_TKILL);
	if (!node)
		return;
	/* fz_leave_runtime() looks. */
	fz_sigqueue_add(self, node);
	if (own_thread)
		/* It may be about to sleep in there. */
		fz_wake_any(self, FZ_WHY_SIGNAL);
	else
		fz_signal_undelivered();
}

void fz_signal_unmark(void *siginfo)
{
	struct fz_siginfo_head *info = siginfo;

	if (info->code <= CODE_HANDED_BACK && info->code > CODE_HANDED_BACK - CODE_MAX)
		info->code = CODE_HANDED_BACK - info->code;
	else if (info->code == CODE_QUEUE && info->error == FZ_SIGNAL_DIRECTED)
		info->error = 0;
}

/* For this thread and no other, of what the kernel sends in either case? */
static bool take_directed(struct fz_fiber *self, int sig, struct fz_siginfo_head *info)
{
	bool directed = info->code == CODE_QUEUE && info->error == FZ_SIGNAL_DIRECTED;

	fz_signal_unmark(info);
	if (directed)
		return true;
	/* relaxed: written before the timer was made. */
	return info->code == CODE_TIMER && fz_signal_bit(sig) &
	       atomic_load_explicit(&self->sig.timer_signals, memory_order_relaxed);
}

void fz_signal_arrived(int sig, void *siginfo, void *ucontext)
{
	struct fz_fiber *self = fz_self();
	struct fz_siginfo_head *info = siginfo;
	bool busy = atomic_load_explicit(&self->in_runtime, memory_order_relaxed) ||
		    self->sig.between_lives ||
		    self->kind == FZ_KIND_CARRIER || self->kind == FZ_KIND_HELPER;
	bool directed = take_directed(self, sig, info);
	uint64_t bit = fz_signal_bit(sig);

	if (synchronous(sig, info)) {
		/* In here it is our own fault; show it where it happened. */
		if (!busy && !fz_signal_substituted(sig)) {
			fz_signal_call_handler(self, sig, siginfo, ucontext);
			return;
		}
		report_overflow(self, info);
		set_default(sig);
		return;
	}
	/* In a process without fibers, too: it may hold a lock of the parking lot. */
	if (busy) {
		arrived_in_runtime(self, sig, info, directed);
		return;
	}
	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire)) {
		fz_signal_call_handler(self, sig, siginfo, ucontext);
		/* It may have interrupted sem_wait. */
		fz_wake_any(self, FZ_WHY_SIGNAL);
		return;
	}
	/* For this thread, as the kernel has it or as we sent it. */
	if (self->sig.injecting == sig || self->sig.owed == sig || directed ||
	    info->code == CODE_TKILL || sig == SIG_PIPE || sig == SIG_XFSZ || sig == SIG_PROF ||
	    sig == SIG_VTALRM) {
		if (self->sig.injecting == sig)
			self->sig.injecting = 0;
		else if (self->sig.owed == sig)
			self->sig.owed = 0;
		else
			fz_overrun_collect(siginfo);
		fz_signal_call_handler(self, sig, siginfo, ucontext);
		return;
	}
	if (!(fz_signal_waited_for() & bit) && !fz_signal_substituted(sig) &&
	    (self->thread.is_main || !main_wants(sig))) {
		fz_overrun_collect(siginfo);
		fz_signal_call_handler(self, sig, siginfo, ucontext);
	} else {
		fz_signal_leave_to_monitor(sig, siginfo);
	}
}

/* ---- delivery to itself ------------------------------------------------- */

int fz_signal_send_here(struct fz_fiber *self, int sig, const struct fz_siginfo *info)
{
	const uint64_t all = ~(uint64_t)0;
	/* Nested, if a handler comes between. */
	uint8_t before = self->sig.injecting;
	uint64_t mask;
	int err;

	self->sig.injecting = (uint8_t)sig;
	atomic_signal_fence(memory_order_seq_cst);
	/* After a handler it might be another kernel thread. */
	fz_sys_sigmask(HOW_SETMASK, &all, &mask);
	err = (int)fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), fz_sys_gettid(), sig,
			       (long)info);
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	atomic_signal_fence(memory_order_seq_cst);
	self->sig.injecting = before;
	return err;
}

static void run_pending(struct fz_fiber *self, bool stacked);

/*
 * The handler of sig is about to run in a call with a mask of its own: what is let in by
 * that mask and by the handler's comes on top of it, and so before it, and the rest stays
 * pending.
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
	/* relaxed: one that comes later comes when it comes. */
	if (!(atomic_load_explicit(&self->pending, memory_order_relaxed) & ~during &
	      ~FZ_SIGNAL_HANDLED))
		return;
	/* One on top may leave the call by siglongjmp. */
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

static void run_pending(struct fz_fiber *self, bool stacked)
{
	struct fz_siginfo info;
	struct fz_signode *node;
	int sig;

	/* It looks itself, and owes; or looks when it has begun. */
	if (FZ_UNLIKELY(self->sig.handler_ends || self->sig.between_lives))
		return;
	/*
	 * No nudge may run another of the same signal between taking one and handling
	 * it.  seq_cst: pairs with fz_sigqueue_add().
	 */
	while (atomic_load_explicit(&self->pending, memory_order_seq_cst) &
	       ~self->mask & ~self->sig.sigwait_set & ~FZ_SIGNAL_HANDLED) {
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
		/* RLIMIT_SIGPENDING: the kernel was rid of it already, so it must not be lost. */
		if ((uintptr_t)fz_signal_action_get(sig).handler != 1 &&
		    fz_signal_send_here(self, sig, &info) == -EAGAIN)
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
	/* relaxed: one that comes later is followed by a nudge. */
	if (FZ_UNLIKELY(atomic_load_explicit(&self->pending, memory_order_relaxed) & ~self->mask))
		fz_signal_run_pending(self);
}

void fz_signal_life_ends(struct fz_fiber *self)
{
	if (self->kind == FZ_KIND_FIBER)
		self->sig.between_lives = true;
	atomic_signal_fence(memory_order_seq_cst);
}

/*
 * One at a time, and the next when that one's handler ends.  Returns false if one is pending
 * that will not come so.
 */
static bool owe_next(struct fz_fiber *self, uint64_t mask)
{
	uint8_t before = self->sig.injecting;
	struct fz_signode *node;

	/* It is on its way, or in a frame below; not if it has been ignored since. */
	if (self->sig.owed && !fz_signal_takes_no_notice(self->sig.owed))
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
			/* The kernel has no room for it: by a nudge, then. */
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
	/* relaxed: one that comes later is followed by a nudge. */
	return FZ_LIKELY(!(atomic_load_explicit(&self->pending, memory_order_relaxed) & ~mask &
			   ~self->sig.sigwait_set & ~FZ_SIGNAL_HANDLED)) ||
	       owe_next(self, mask);
}

/*
 * What was kept for the process while the handler had it blocked.  As if in the runtime,
 * but not waiting for a processor: the handler may have interrupted libc's fork, which has
 * locks that those wait for who could give us one.
 */
static void take_meanwhile(struct fz_fiber *self, uint64_t mask)
{
	/* In a child of fork that is not ours yet the lock may be held by nobody. */
	if (fz_sys_gettid() != self->carrier->tid)
		return;
	/* relaxed, and signal fences: only handlers on this thread look. */
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
	 * Left as it was it is nobody's news: if it is not what we believe, this interrupts
	 * another handler that has just begun, maybe inside libc's fork, where entering the
	 * runtime is not allowed.
	 */
	const bool changed = before != mask;

	if (self->kind != FZ_KIND_FIBER ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	mask &= ~(FZ_SIGNALS_OF_LIBC | fz_signal_bit(SIG_KILL) | fz_signal_bit(SIG_STOP));
	/* As in fz_signal_call_handler(); adopting a mask may end elsewhere, with its own. */
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
	/* If this interrupts fz_signal_apply_mask(), what the kernel will have in a moment. */
	self->carrier->kernel_mask = self->mask;
	if (FZ_UNLIKELY(self->has_alt_stack || alt_stack->size ||
			self->carrier->report_stack.size))
		fz_alt_stack_handler_ends(self, alt_stack);
	fz_signal_owe(self, mask);
}

bool fz_signal_is_mine(struct fz_fiber *self, int sig)
{
	uint64_t bit = fz_signal_bit(sig);

	return self->kind == FZ_KIND_FIBER && !(self->mask & bit) &&
	       !(fz_signal_waited_for() & bit) &&
	       (self->thread.is_main || !(main_wants(sig) || fz_signal_main_is_wired()));
}

void fz_signal_collect(struct fz_fiber *self, int err)
{
	static const struct __kernel_timespec none;
	const int sig = err == -EPIPE ? SIG_PIPE : SIG_XFSZ;
	uint64_t set = fz_signal_bit(sig);
	struct fz_siginfo info;
	struct fz_signode *node;

	if (self->kind != FZ_KIND_FIBER || !(self->mask & set) ||
	    fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none,
			sizeof(set)) != sig)
		return;
	node = fz_signode_new(sig, &info, true, false);
	if (node)
		fz_sigqueue_add(self, node);
}

struct fz_siginfo fz_signal_info(int sig, int code, uint64_t value)
{
	struct fz_siginfo info = { .bytes = { 0 } };
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&info;

	head->signo = sig;
	head->code = code;
	head->pid = (int)fz_sys_getpid();
	head->uid = (uint32_t)fz_syscall0(__NR_getuid);
	head->value = value;
	return info;
}

void fz_signal_after_fork(void)
{
	fz_signal_masks_after_fork();
	fz_sigqueue_after_fork();
	fz_overrun_after_fork();
	fz_sigwait_after_fork();
	fz_signal_route_after_fork();
	fz_signal_actions_after_fork();
}
